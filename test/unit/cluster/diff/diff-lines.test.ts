import { describe, expect, it } from 'vitest'
import { diffLines, diffClusters, type DiffSide } from '../../../../src/cluster/desired/diff.ts'
import { renderChange } from '../../../../src/cluster/commands/perform-change.ts'
import { createHideOf } from '../../../../src/definition/slots/secrets.ts'
import { wantedCluster, wantedPack } from '../../../support/cluster-parts.ts'

const shown = (before: string, after: string) =>
  diffLines(before, after).lines.map(
    ({ change, line, text }) => `${change === 'added' ? '+' : '-'}${line} ${text}`,
  )

describe('the lines of two texts', () => {
  it.each<[string, string, string[]]>([
    ['a\nb\nc\n', 'a\nx\nc\n', ['-2 b', '+2 x']],
    ['a\nc\n', 'a\nb\nc', ['+2 b']],
    ['a\nb\nc\n', 'a\nc\n', ['-2 b']],
    ['', 'a\n', ['+1 a']],
    ['a\n', '', ['-1 a']],
    ['a\na\n', 'a\na\na\n', ['+3 a']],
    ['a\r\nb\r\n', 'a\nb\n', []],
    ['one\ntwo\nthree\nfour\n', 'two\n2.5\nthree\n4\n', ['-1 one', '+2 2.5', '-4 four', '+4 4']],
  ])('%j and %j differ in %j', (before, after, lines) => {
    expect(shown(before, after)).toEqual(lines)
  })

  it('are bounded, in number, in length and in work', () => {
    const many = (text: string) => Array.from({ length: 40_000 }, (_, at) => `${text}${at}\n`).join('')
    const { lines, leftOut } = diffLines(many('a'), many('b'))
    expect([lines.length, leftOut]).toEqual([200, 79_800])
    expect(diffLines('a', 'x'.repeat(10_000)).lines[1]?.text).toHaveLength(403)
  })
})

describe('the values of packs', () => {
  const secret = 'first line\nsecond line'
  const side = (values: string): DiffSide => ({
    desired: wantedCluster({ packs: [{ ...wantedPack('web'), digest: values }] }),
    definition: { name: 'shop', version: '1.0.0', sha256: values },
    profiles: [
      {
        ...{ profileUid: 'p1', profileName: 'shop', profileVersion: '1.0.0', profileType: 'cluster' },
        ...{ profileDescription: '', profileTags: '', variables: [] },
        packs: [{ name: 'web', version: '1.0.0', layer: 'addon', values, logo: '', images: [] }],
      },
    ],
    given: [],
  })

  it('are shown line by line, masked also where a sensitive value has several lines', () => {
    const diff = diffClusters(
      side(`replicas: 1\nkey: |\n${secret}\n`),
      side(`replicas: 2\nkey: |\n${secret}\nmore: yes\n`),
      createHideOf([secret]),
    )
    expect(diff.packs[0]?.values).toEqual([
      { change: 'removed', line: 1, text: 'replicas: 1' },
      { change: 'added', line: 1, text: 'replicas: 2' },
      { change: 'added', line: 4, text: 'more: yes' },
    ])
    const text = renderChange(
      { isPossible: true, isChanged: true, isHeld: false, problems: [], diff, plan: [] },
      [],
      { columns: 100, hasColor: false } as never,
    )
    expect(text).toContain(
      'Values of web, line by line:\n  - 1  replicas: 1\n  + 1  replicas: 2\n  + 4  more: yes\n',
    )
    expect(text).not.toContain('second line')
  })
})
