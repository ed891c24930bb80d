import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { preflightCodes } from '../../../src/cluster/desired/preflight-codes.ts'
import { errorTable } from '../../../src/edgehostd/declarations.ts'

interface Document {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Readonly<Record<string, unknown>>>>>>
}

const { paths } = JSON.parse(
  readFileSync(new URL('../../../docs/openapi.json', import.meta.url), 'utf8'),
) as Document

/** What a host that a platform manages refuses with 403, as texts spell it: `POST /v1/edge-mgmt/cluster`. */
const refusedThere = Object.entries(paths).flatMap(([path, methods]) =>
  Object.entries(methods)
    .filter(([, operation]) => operation['x-airgap-only'] === true)
    .map(([method]) => `${method.toUpperCase()} ${path}`),
)

const namesOne = (text: string) =>
  refusedThere.some((each) =>
    text
      .split(each)
      .slice(1)
      .some((rest) => !/^[\w/{-]/.test(rest)),
  )

const texts = Object.entries({ ...errorTable, ...preflightCodes }).map(([code, { meaning, action }]) => ({
  ...{ code, text: `${meaning} ${action}` },
}))

it('advice that names what only a host does that is managed there says so', () => {
  expect(refusedThere).toContain('POST /v1/edge-mgmt/cluster/rollback')
  const naming = texts.filter(({ text }) => namesOne(text))
  const expected = ['VersionSkew', 'VariableInvalid', 'PreflightFailed']
  expect(naming.map(({ code }) => code)).toEqual(expect.arrayContaining(expected))
  expect(naming.filter(({ text }) => !/\bon a host that is managed there/i.test(text))).toEqual([])
})
