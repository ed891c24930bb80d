import { copyFileSync, existsSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Problem } from '../../../src/definition/definition.ts'
import type { ClusterConfigArchiveDetails, Pack } from '../../../src/definition/schemas.ts'
import { createCtl, type Ctl } from '../../support/ctl.ts'
import { uploadFile } from '../../support/definition-upload.ts'
import { authoringProgram } from '../../support/programs.ts'
import { createTestEdge, type ErrorReply, type TestEdge } from '../../support/test-edge.ts'

/** What is expected of a form: `test/fixtures/definition-forms/<form>/expected.json`. */
interface Expected {
  /** More arguments of `definition build`. */
  readonly build?: readonly string[]
  /** Why it is not built; absent if it is built. */
  readonly refused?: readonly string[]
  /** `code severity place` of each problem, in order. An error also refuses the upload. */
  readonly problems?: readonly string[]
  /** Packs as inspect and details show them: `name[/display name] version`, then images, guessed ones with a question mark. */
  readonly packs?: readonly (readonly string[])[]
}

const folder = join(import.meta.dirname, '../../fixtures/definition-forms')
const forms = readdirSync(folder)

let ctl: Ctl
let edge: TestEdge
let token: string
beforeAll(async () => {
  ctl = createCtl()
  copyFileSync(authoringProgram(), join(ctl.home, 'definition.cjs'))
  edge = await createTestEdge()
  token = (await edge.login('alice')).access
})
afterAll(async () => {
  await edge.stop()
  rmSync(ctl.home, { recursive: true })
})

const read = (form: string) =>
  JSON.parse(readFileSync(join(folder, form, 'expected.json'), 'utf8')) as Expected

async function run(...args: readonly string[]): Promise<{ exitCode: number | undefined; output: unknown }> {
  const { exitCode, stdout, stderr } = await ctl.run(['definition', ...args, '-o', 'json'])
  if (stdout === '') throw new Error(stderr)
  return { exitCode, output: JSON.parse(stdout) as unknown }
}

/** Builds a form from its files and its folder of packs. */
function build(form: string, file: string) {
  const at = join(folder, form)
  const profiles = readdirSync(at).filter((name) => /\.(json|yaml)$/.test(name) && name !== 'expected.json')
  const packs = existsSync(join(at, 'packs')) ? ['--pack', join(at, 'packs')] : []
  const args = ['--profile', ...profiles.map((name) => join(at, name)), ...packs, ...(read(form).build ?? [])]
  return run('build', ...args, '--file', file)
}

/** @param root prefix that is removed from places */
const told = (problems: readonly Problem[], root?: string) =>
  problems.map(
    ({ code, severity, place }) =>
      `${code} ${severity} ${root === undefined ? place : place.replace(`${root}/`, '')}`,
  )

/** Code and severity of problems. */
const kindsOf = (lines: readonly string[]) => lines.map((line) => line.replace(/ [^ ]*$/, '')).sort()

const summary = ({
  name,
  displayName,
  version,
  images,
  guessedImages = [],
}: Pick<Pack, 'name' | 'displayName' | 'version' | 'images' | 'guessedImages'>) => [
  `${name}${displayName ? `/${displayName}` : ''} ${version}`.trim(),
  ...images,
  ...guessedImages.map(({ image, isTagKnown }) => `${image} ?${isTagKnown ? '' : ' tag'}`),
]

describe.each(forms)('a definition whose form is %s', (form) => {
  const expected = read(form)
  const file = () => join(ctl.home, `${form}.tgz`)

  it(expected.refused ? `${form} is not built, for the expected reasons` : `${form} is built`, async () => {
    const { exitCode, output } = await build(form, file())
    const { problems = [] } = output as { problems?: Problem[] }
    const places = told(problems, join(folder, form))
    if (expected.refused) expect(places).toEqual(expected.refused)
    // Those of the archive, at the files of the author.
    else expect(kindsOf(places)).toEqual(kindsOf(expected.problems ?? []))
    for (const place of places) expect(place).not.toContain('profiles/')
    expect(exitCode).toBe(places.some((line) => line.includes(' error ')) ? 1 : 0)
  })

  it.skipIf(expected.refused)(`${form} is inspected with the expected packs and images`, async () => {
    const { exitCode, output } = await run('inspect', file())
    expect(exitCode).toBe(0)
    expect((output as { packs: Pack[] }).packs.map(summary)).toEqual(expected.packs)
  })

  it.skipIf(expected.refused)(`${form} has the expected problems`, async () => {
    const { exitCode, output } = await run('validate', file())
    const { problems } = output as { problems: Problem[] }
    expect(told(problems)).toEqual(expected.problems)
    expect(exitCode).toBe(problems.some(({ severity }) => severity === 'error') ? 1 : 0)
  })

  it.skipIf(expected.refused)(
    `${form} is accepted as an upload and shown, unless it has an error`,
    async () => {
      const reply = await uploadFile(edge, token, readFileSync(file()))
      const errors = (expected.problems ?? []).filter((line) => line.includes(' error '))
      if (errors.length > 0) {
        expect(reply.statusCode).toBe(400)
        const { code, details } = reply.json<ErrorReply>()
        expect(code).toBe('DefinitionInvalid')
        expect(told((details as { problems: Problem[] }).problems)).toEqual(errors)
        return
      }
      expect(reply.statusCode, reply.body).toBe(201)
      const shown = await edge.get('/v1/edge-mgmt/clusters/archive/overridden/details', token)
      const { clusterProfileDetails, problems = [] } = shown.json<ClusterConfigArchiveDetails>()
      expect(clusterProfileDetails.flatMap(({ packs }) => packs).map(summary)).toEqual(expected.packs)
      expect(told(problems).sort()).toEqual([...(expected.problems ?? [])].sort())
    },
  )
})
