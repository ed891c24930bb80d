import { describe, expect, it } from 'vitest'
import { readPlain } from '../../../../src/definition/rules/plain-values.ts'
import { renderValues, variable } from '../../../support/rendered-values.ts'

const macro = '{{.spectro.system.cluster.name}}'

describe('the name of a cluster without quotes', () => {
  it.each(['no', 'y', 'off', '1e3', '0o17', '0x1F', '1_000', '~', '.inf', '12:30:45', '2001-01-01', 'shop'])(
    'stays the text %s as a value, in a list, in brackets and as a key',
    (name) => {
      const values = `a: ${macro}\nb:\n  - ${macro}\nc: [${macro}]\n${macro}: d\n`
      const { content = '', places } = renderValues(values, { facts: { clusterName: name } })
      expect(readPlain(content).documents).toEqual([{ a: name, b: [name], c: [name], [name]: 'd' }])
      expect(places).toEqual([])
    },
  )

  it('is as it was in quotes, beside other text, and where it is text anyway', () => {
    const values = `a: "${macro}"\nb: '${macro}'\nc: x-${macro}\nd: |\n  ${macro}\n`
    const { content } = renderValues(values, { facts: { clusterName: 'no' } })
    expect(content).toBe(values.replaceAll(macro, 'no'))
    expect(renderValues(`a: ${macro}\n`, { facts: { clusterName: 'shop' } }).content).toBe('a: shop\n')
  })

  it.each([
    [
      'a map',
      `name: ${macro}\nlist: [${macro}, x-${macro}]\nquoted: "${macro}"\n`,
      { name: 'no', list: ['no', 'x-no'], quoted: 'no' },
    ],
    ['a list', `- ${macro}\n- a: ${macro} # note\n`, ['no', { a: 'no' }]],
    ['a map with a block of its own', `a: |\n  b: ${macro}\n`, { a: 'b: "no"\n' }],
  ])('stays text in a block that is YAML for a program: %s', (_, block, expected) => {
    const indented = block.replace(/^/gm, '    ').trimEnd()
    const values = `cluster:\n  config: |\n${indented}\nafter: ${macro}\n`
    const { content = '', places } = renderValues(values, { facts: { clusterName: 'no' } })
    const [read] = readPlain(content).documents as [{ cluster: { config: string }; after: string }]
    expect(readPlain(read.cluster.config).documents).toEqual([expected])
    expect(read.after).toBe('no')
    expect(places).toEqual([])
  })

  it.each([
    ['a script', `#!/bin/sh\nif true; then\n  name ${macro}\nfi`],
    ['folded', `a: ${macro}`, '>'],
    ['no collection', macro],
    ['no YAML', `a: ${macro}\n}`],
  ])('is as it was in a block that is none: %s', (_, block, header = '|') => {
    const values = `a: ${header}\n${block.replace(/^/gm, '  ')}\n`
    const { content } = renderValues(values, { facts: { clusterName: 'no' } })
    expect(content).toBe(values.replaceAll(macro, 'no'))
  })

  it('is not a variable, whose author may mean a number', () => {
    const { content } = renderValues('a: {{.spectro.var.v}}\n', variable('80'))
    expect(content).toBe('a: 80\n')
  })
})
