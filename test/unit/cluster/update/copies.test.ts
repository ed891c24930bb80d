import { expect, it } from 'vitest'
import { copyFor, generationsOf } from '../../../../src/cluster/loop/activation.ts'
import type { Revision } from '../../../../src/cluster/desired/revisions.ts'

const revision = (generation: number, version: string) =>
  ({ generation, summary: { kubernetes: { pack: 'edge-k8s', version } } }) as Pick<
    Revision,
    'generation' | 'summary'
  >
const revisions = [
  revision(6, '1.34.4'),
  revision(5, '1.34.4'),
  revision(4, '1.33.13'),
  revision(3, '1.33.13'),
]
const copies = [
  { from: '1.33.13', generation: 5, at: 20 },
  { from: '1.32.1', generation: 2, at: 10 },
]

it('a revision of the version of a copy can be gone back to', () => {
  expect(copyFor(copies, revision(3, '1.33.13'))).toEqual(copies[0])
  expect(copyFor(copies, revision(6, '1.34.4'))).toBeUndefined()
})

it('the revision that ran when a copy was made is kept with it', () => {
  expect(generationsOf(copies, revisions)).toEqual([4])
  expect(generationsOf([], revisions)).toEqual([])
})
