import { expect, it } from 'vitest'
import { readStages } from '../../../src/configuration/stages.ts'

const read = (yaml: string) => readStages(Buffer.from(yaml).toString('base64'))

it('steps are read in the order of the text, with or without the key above', () => {
  const text = `boot:
  - name: first
    commands:
      - echo one
      - "echo 'two'"
  - files:
      - path: /etc/plant/line.conf
        content: |
          line=7
        permissions: 0600
network.after:
  - commands: [echo three]
`
  const expected = [
    { path: 'stages.boot[0]', commands: ['echo one', "echo 'two'"], files: [] },
    {
      path: 'stages.boot[1]',
      commands: [],
      files: [
        {
          path: '/etc/plant/line.conf',
          base64: Buffer.from('line=7\n').toString('base64'),
          mode: 0o600,
        },
      ],
    },
    { path: 'stages.network.after[0]', commands: ['echo three'], files: [] },
  ]
  expect(read(text)).toEqual(expected)
  expect(read(`stages:\n${text.replace('0600', '"0o600"').replace(/^/gm, '  ')}`)).toEqual(expected)
})

it.each([
  ['~', 'stages are not a map'],
  ['boot: {}', 'stages.boot is not a list of steps'],
  ['boot: []', 'stages have no step'],
  ['- x', 'stages are not a map'],
  ['boot: [x]', 'stages.boot[0] is not a step'],
  ['boot: [{users: {}}]', 'stages.boot[0].users is not a field of a step that can be run here'],
  ['boot: [{commands: x}]', 'stages.boot[0].commands are not a list'],
  ['boot: [{commands: [5]}]', 'stages.boot[0].commands[0] is not a command'],
  ['boot: [{commands: [""]}]', 'stages.boot[0].commands[0] is not a command'],
  ['boot: [{files: [{path: etc/x}]}]', 'stages.boot[0].files[0].path is not the absolute path'],
  ['boot: [{files: [{path: /etc/../x}]}]', 'stages.boot[0].files[0].path is not the absolute path'],
  ['boot: [{files: [{path: /x, owner: 0}]}]', 'stages.boot[0].files[0].owner is not a field'],
  ['boot: [{files: [{path: /x, permissions: 4000}]}]', 'stages.boot[0].files[0].permissions is not a mode'],
  ['boot: [{files: [{path: /x, encoding: gzip}]}]', 'stages.boot[0].files[0].encoding is neither'],
  ['"a b": [{commands: [x]}]', 'stages have a stage whose name'],
  ['stages: {boot: [{commands: [x]}]}\nname: x', 'stages.name is not a field of stages'],
  ['boot: [{', 'stages are not YAML'],
  [`boot: [{commands: [${'x'.repeat(70_000)}]}]`, 'stages are longer than'],
  [`boot: [${'{commands: [x]},'.repeat(201)}]`, 'stages have 201 steps'],
])('%.60j is refused', (yaml, reason) => {
  expect(() => read(yaml)).toThrow(reason)
})

it('what is not base64 is refused', () => {
  expect(() => readStages('boot: []')).toThrow('stages are not base64 of YAML')
})

it('many aliases are refused', () => {
  const bomb = [
    'a0: &a0 [x]',
    ...Array.from({ length: 9 }, (_, n) => `a${n + 1}: &a${n + 1} [*a${n}, *a${n}, *a${n}]`),
  ]
  expect(() => read(bomb.join('\n'))).toThrow('stages have too many aliases')
})
