import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { Variable } from '../../../src/definition/definition.ts'
import type { CountedProfiles } from '../../../src/definition/examination/protocol.ts'
import { costlyVariables } from '../../support/costly-patterns.ts'
import { cpuNow } from '../../support/cpu-time.ts'
import { definitionArchive } from '../../support/definition-archives.ts'
import { uploadDefinition, uploadFile, validatePath } from '../../support/definition-upload.ts'
import { createTestEdge, type TestEdge } from '../../support/test-edge.ts'

let edge: TestEdge
let token: string
beforeEach(async () => {
  edge = await createTestEdge()
  token = (await edge.login('alice')).access
})
afterEach(() => edge.stop())

const usesOf = (variables: readonly Variable[]) =>
  variables.map(({ name }) => `${name}: "{{ .spectro.var.${name} }}"\n`).join('')
const validate = (archiveUploadPath: string, variables: readonly { name: string; value?: string }[] = []) =>
  edge.post(validatePath, { archiveUploadPath, variables }, { headers: { authorization: token } })
const judgedIn = (reply: { body: string }) =>
  (
    JSON.parse(reply.body) as {
      variables: { name: string; isValid: boolean; validationFailureReason: string }[]
    }
  ).variables
const profilesFile = (uid: string) => join(edge.stateDirectory, 'definitions', uid, 'profiles.json')

/** Replaces the stored state of the slot by that of an older version: only the profiles, no counted patterns. */
async function plant(variables: readonly Variable[]): Promise<string> {
  const { uid, uploadPath } = await uploadDefinition(edge, token)
  const place = 'profiles/u1/profile.json'
  await writeFile(profilesFile(uid), JSON.stringify([{ place, uid: 'u1', name: 'profile u1', variables }]))
  return uploadPath
}

describe('a definition whose patterns would take all memory', () => {
  it('a definition with too large patterns is refused with the variables by name, and the slot is unchanged', async () => {
    const { uid } = await uploadDefinition(edge, token)
    const reply = await uploadFile(
      edge,
      token,
      definitionArchive({ variables: costlyVariables, values: usesOf(costlyVariables) }),
    )
    expect(reply.statusCode).toBe(400)
    expect(reply.json()).toMatchObject({
      code: 'DefinitionInvalid',
      details: {
        count: 20,
        problems: costlyVariables.map(({ name }, index) => ({
          code: 'VariablePatternInvalid',
          severity: 'error',
          place: `profiles/u1/profile.json#spec.variables[${index}]`,
          message: expect.stringContaining(`variable ${name} has a regex that needs about`) as string,
        })),
      },
    })
    const details = await edge.get('/v1/edge-mgmt/clusters/archive/overridden/details', token)
    expect(details.json()).toMatchObject({ uid })
  })

  it('values for a definition with too large patterns that an older version accepted are refused with the reason', async () => {
    const path = await plant(costlyVariables)
    const begin = cpuNow()
    const reply = await validate(path, [{ name: 'v0', value: 'x'.repeat(60_000) }])
    expect(reply.statusCode).toBe(200)
    for (const { name, isValid, validationFailureReason } of judgedIn(reply)) {
      expect(isValid).toBe(false)
      expect(validationFailureReason).toMatch(new RegExp(`^${name} has a regex that needs about`))
    }
    // The patterns are counted by then, and are not compiled on the event loop either.
    expect(judgedIn(await validate(path))).toHaveLength(20)
    expect(cpuNow() - begin).toBeLessThan(1_000)
  })
})

describe('values that are long for their patterns', () => {
  const variables: Variable[] = [
    { name: 'a', regex: '^(?:[a-z]x?){600}$' },
    { name: 'b', regex: '^b+$', defaultValue: 'bbb' },
  ]
  const given = [{ name: 'a', value: `${'xy'.repeat(10_000)}!` }]
  const expected = [
    { name: 'a', isValid: false, validationFailureReason: 'a must match the regex ^(?:[a-z]x?){600}$' },
    { name: 'b', isValid: true },
  ]

  it('long values are judged the same in a process, and the event loop is not blocked', async () => {
    const { uploadPath } = await uploadDefinition(edge, token, { variables, values: usesOf(variables) })
    const begin = cpuNow()
    expect(judgedIn(await validate(uploadPath, given))).toMatchObject(expected)
    expect(cpuNow() - begin).toBeLessThan(300)
    expect(judgedIn(await validate(uploadPath, [{ name: 'a', value: '!' }]))).toMatchObject(expected)
  })

  it('long values are judged the same if an older version stored the definition', async () => {
    const path = await plant(variables)
    for (const values of [given, [{ name: 'a', value: '!' }]])
      expect(judgedIn(await validate(path, values))).toMatchObject(expected)
  })

  it('judgements in a process wait for each other, and more than four are refused with a 503', async () => {
    const { uploadPath } = await uploadDefinition(edge, token, { variables, values: usesOf(variables) })
    const replies = await Promise.all(Array.from({ length: 6 }, () => validate(uploadPath, given)))
    expect(replies.map(({ statusCode }) => statusCode).sort()).toEqual([200, 200, 200, 200, 503, 503])
    expect(replies.find(({ statusCode }) => statusCode === 503)?.headers['retry-after']).toBe('5')
  })
})

describe('what the examination leaves', () => {
  it('the examination stores the size of each pattern', async () => {
    const variables = [{ name: 'a', regex: '^[a-z]+$' }, { name: 'b' }]
    const { uid } = await uploadDefinition(edge, token, { variables, values: usesOf(variables) })
    const stored = JSON.parse(await readFile(profilesFile(uid), 'utf8')) as CountedProfiles
    expect(stored.patterns).toEqual([['^[a-z]+$', 6]])
    expect(stored.profiles).toMatchObject([{ uid: 'u1', variables }])
  })
})

describe('a validation', () => {
  it('a validation takes at most 4,096 values and names the field', async () => {
    const path = await plant([])
    const reply = await validate(
      path,
      Array.from({ length: 4_097 }, () => ({ name: 'a' })),
    )
    expect(reply.statusCode).toBe(400)
    expect(reply.body).toContain('variables')
  })

  it('a validation of too many variables, which an older version accepted, runs in a process', async () => {
    const many = Array.from({ length: 6_000 }, (_, index) => ({
      name: `v${index}`,
      defaultValue: 'x'.repeat(100),
      format: 'string',
    }))
    expect(judgedIn(await validate(await plant(many)))).toHaveLength(6_000)
  })
})
