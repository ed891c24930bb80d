import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { categories, conditionTypes, type Reason } from '../../../../src/cluster/events/condition-types.ts'
import { expectedOrder, reasons } from '../../../../src/cluster/events/reasons.ts'

const all = Object.entries<Reason>(reasons)

describe('the table of reasons', () => {
  it('every type of condition has a reason that says whether it holds', () => {
    for (const type of Object.keys(conditionTypes))
      expect(
        all.filter(([, reason]) => reason.type === type && reason.status !== undefined),
        type,
      ).not.toEqual([])
  })

  it('every reason is one that the daemon gives', () => {
    const room = join(import.meta.dirname, '../../../../src/cluster')
    const texts = readdirSync(room, { recursive: true, encoding: 'utf8' })
      .filter((file) => file.endsWith('.ts') && !/^(commands|events)\//.test(file))
      .map((file) => readFileSync(join(room, file), 'utf8'))
      .join('\n')
    expect(all.map(([name]) => name).filter((name) => !texts.includes(`'${name}'`))).toEqual([])
  })

  it('a reason that every cluster has makes its condition true', () => {
    const expected = all.filter(([, { isExpected }]) => isExpected)
    expect(expected.map(([name, { status }]) => [name, status])).toEqual(
      expected.map(([name]) => [name, 'True']),
    )
  })

  it('a condition has one reason at most that is expected, so that one condition a type shows all that was reached', () => {
    const types = all.filter(([, { isExpected }]) => isExpected).map(([, { type }]) => type)
    expect(types).toEqual([...new Set(types)])
  })

  it('a reason that makes a condition false or unknown for a problem is a warning', () => {
    const quiet = all.filter(([, { status, severity }]) => status === 'Unknown' && severity !== 'Warning')
    expect(quiet).toEqual([])
  })

  it('the expected order goes through the categories from the request to the running cluster', () => {
    const order = expectedOrder()
    expect(order.map(({ category, order: place }) => [place, category])).toEqual([
      [1, 'Request'],
      [2, 'Host'],
      [3, 'ControlPlane'],
      [4, 'Packs'],
      [5, 'Operation'],
    ])
    expect(order.flatMap(({ category }) => [category]).every((each) => each in categories)).toBe(true)
    expect(order[0]?.conditionsOrder[0]).toEqual({
      order: 1,
      type: 'ClusterAccepted',
      typeLabel: 'Cluster accepted',
      reason: 'Accepted',
      reasonLabel: 'Accepted',
    })
    expect(order.at(-1)?.conditionsOrder.at(-1)?.reason).toBe('Running')
  })
})

describe('docs/cluster-events.md', () => {
  const folder = join(import.meta.dirname, '../../../..')
  const text = readFileSync(join(folder, 'docs/cluster-events.md'), 'utf8')
  const documented = new Set([...text.matchAll(/^\| *\d* *\| `(\w+)` \|/gm)].map(([, reason]) => reason))

  it('has every reason, and no other', () => {
    expect(documented).toEqual(new Set(all.map(([name]) => name)))
  })

  it('has every reason that a line of a step or of kubeadm gives', () => {
    const lines = readFileSync(join(folder, 'src/cluster/engine/step-lines.ts'), 'utf8')
    const given = [...lines.matchAll(/^ {2}'?[a-z/-]+'?: '([A-Z]\w+)',$/gm)].map(([, reason]) => reason)
    expect(given.length).toBeGreaterThan(25)
    expect(given.filter((reason) => !documented.has(reason))).toEqual([])
  })
})
