import { copyFileSync, existsSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Prepared } from '../../../src/cluster/desired/prepared.ts'
import { createCtl, type Ctl } from '../../support/ctl.ts'
import { isKitMissing } from '../../support/kubernetes-kit.ts'
import { prepareBench } from '../../support/prepare-bench.ts'
import { authoringProgram } from '../../support/programs.ts'

/** What is expected of a form: `test/fixtures/definition-forms/<form>/expected.json`. */
interface Expected {
  /** More arguments of `definition build`. */
  readonly build?: readonly string[]
  readonly refused?: readonly string[]
  readonly problems?: readonly string[]
  /** What `summary` says of the prepared cluster. */
  readonly prepared?: readonly string[]
}

const folder = join(import.meta.dirname, '../../fixtures/definition-forms')
const expectedOf = (form: string) =>
  JSON.parse(readFileSync(join(folder, form, 'expected.json'), 'utf8')) as Expected
/** Forms that a host accepts. */
const forms = readdirSync(folder).filter((form) => {
  const { refused, problems = [] } = expectedOf(form)
  return refused === undefined && !problems.some((line) => line.includes(' error '))
})

let ctl: Ctl
beforeAll(() => {
  ctl = createCtl()
  copyFileSync(authoringProgram(), join(ctl.home, 'definition.cjs'))
})
afterAll(() => rmSync(ctl.home, { recursive: true }))

const bench = prepareBench()

async function build(form: string): Promise<Buffer> {
  const at = join(folder, form)
  const profiles = readdirSync(at).filter((name) => /\.(json|yaml)$/.test(name) && name !== 'expected.json')
  const packs = existsSync(join(at, 'packs')) ? ['--pack', join(at, 'packs')] : []
  const file = join(ctl.home, `${form}.tgz`)
  const args = [
    '--profile',
    ...profiles.map((name) => join(at, name)),
    ...packs,
    ...(expectedOf(form).build ?? []),
  ]
  const { exitCode, stderr } = await ctl.run(['definition', 'build', ...args, '--file', file])
  if (exitCode !== 0) throw new Error(stderr)
  return readFileSync(file)
}

/** A line for each pack, with its order, namespaces, manifests, charts and images; then one for each problem. */
const summary = ({ desired: wanted, problems }: Prepared): string[] => [
  ...wanted.packs.map(({ id, order, namespaces, manifests, charts, images }) =>
    [
      ...[order, id],
      ...namespaces.map(({ name }) => `namespace ${name}`),
      ...manifests.map(({ name }) => `manifest ${name}`),
      ...charts.map(({ release }) => `release ${release}`),
      ...images.map((image) => `image ${image}`),
    ].join(', '),
  ),
  ...problems.map(({ code, severity, pack = '' }) => `${severity} ${code} ${pack}`.trim()),
]

describe.skipIf(isKitMissing()).each(forms)('a definition whose form is %s', (form) => {
  it('is prepared as expected', async () => {
    const prepared = await bench.prepare(await build(form))
    expect(summary(prepared)).toEqual(expectedOf(form).prepared)
  })
})
