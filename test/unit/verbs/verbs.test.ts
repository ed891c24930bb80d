import Type from 'typebox'
import { describe, expect, it } from 'vitest'
import { verbs as table } from '../../../src/edgehostd/verbs.ts'
import { createVerbs } from '../../../src/verbs/call.ts'
import { answerOrder, defineOwnVerb, defineProgramVerb, VerbRefused } from '../../../src/verbs/verb.ts'

const place = {
  stateDirectory: '/state',
  pam: { program: '/pamtester', service: 'edgehostd' },
  support: { program: '/support.cjs', socket: '' },
  platformProgram: '/platform.cjs',
}
const greet = defineOwnVerb({
  name: 'greet',
  role: 'admin',
  input: Type.Object({ who: Type.String({ maxLength: 5 }) }, { additionalProperties: false }),
  unit: { description: 'greeting', timeoutMs: 1_000, properties: ['ProtectHome=yes'] },
  audit: ({ who }) => `greet ${who}`,
  load:
    async () =>
    async ({ who }) => {
      if (who === 'nobody'.slice(0, 5)) throw new VerbRefused('nobody is there; name somebody')
      return `hello ${who}`
    },
})
const echo = defineProgramVerb({
  name: 'echo',
  role: 'service',
  input: Type.Object({ secret: Type.String() }, { additionalProperties: false }),
  unit: { description: 'echo', timeoutMs: 1_000, properties: [] },
  audit: () => 'echo',
  command: ({ secret }) => ({ program: 'cat', args: [], input: secret }),
  read: ({ stdout }) => stdout.length,
})

/** Verbs whose units are played: `verb.cjs` by the table, a program of the host by its input. */
function createPlayedVerbs() {
  const units: unknown[] = []
  const verbs = createVerbs({
    place,
    program: '/verb.cjs',
    outside: (unit) => ({
      async run(program, args, { input, timeoutMs }) {
        const given = typeof input === 'string' ? input : ''
        units.push({ unit, program, args, timeoutMs })
        if (program === 'cat') return { exitCode: 0, stdout: given, stderr: '' }
        const answer = await answerOrder([greet], args[1] ?? '', given)
        return { exitCode: 0, stdout: JSON.stringify(answer), stderr: '' }
      },
    }),
  })
  return { verbs, units }
}

describe('verbs', () => {
  it('a verb of ours runs in a unit with its sandbox, and its order is on standard input only', async () => {
    const { verbs, units } = createPlayedVerbs()
    expect(await verbs.call(greet, { who: 'ada' }, { role: 'admin' })).toBe('hello ada')
    expect(units).toEqual([
      {
        unit: { description: 'greeting', properties: ['ProtectHome=yes'] },
        program: process.execPath,
        args: ['/verb.cjs', 'greet'],
        timeoutMs: 1_000,
      },
    ])
  })

  it('a program of the host gets its secret on standard input, and its end is read', async () => {
    const { verbs, units } = createPlayedVerbs()
    expect(await verbs.call(echo, { secret: 'canary' }, 'service')).toBe(6)
    expect(JSON.stringify(units)).not.toContain('canary')
  })

  it('a role that is too low, and any user for a verb of the service, is refused before a unit is started', async () => {
    const { verbs, units } = createPlayedVerbs()
    const forbidden = { code: 'Forbidden' }
    await expect(verbs.call(greet, { who: 'ada' }, { role: 'viewer' })).rejects.toMatchObject(forbidden)
    await expect(verbs.call(echo, { secret: '' }, { role: 'admin' })).rejects.toMatchObject(forbidden)
    expect(units).toEqual([])
  })

  it('an input against the schema is refused on both sides, naming its field', async () => {
    const { verbs, units } = createPlayedVerbs()
    await expect(verbs.call(greet, { who: 'too long' }, 'service')).rejects.toThrow(/^greet: who /)
    expect(units).toEqual([])
    const order = JSON.stringify({ who: 'ada', also: 1 })
    expect(await answerOrder([greet], 'greet', order)).toEqual({ refused: expect.stringMatching(/^greet: /) })
    expect(await answerOrder([greet], 'toString', order)).toEqual({
      refused: expect.stringMatching(/does not know "toString"/),
    })
  })

  it('a refusal of the work keeps its reason', async () => {
    const { verbs } = createPlayedVerbs()
    await expect(verbs.call(greet, { who: 'nobod' }, 'service')).rejects.toThrow(
      new VerbRefused('nobody is there; name somebody'),
    )
  })
})

describe('the table of verbs', () => {
  it('each verb has a name of its own, and its schema takes no other fields', () => {
    expect(new Set(table.map(({ name }) => name)).size).toBe(table.length)
    for (const { name, input } of table) {
      expect(name).toMatch(/^[a-z]+(-[a-z]+)+$/)
      expect((input as { additionalProperties?: unknown }).additionalProperties).toBe(false)
    }
  })

  it.each(table.map((verb) => [verb.name, verb] as const))(
    'the text of the audit trail has no secret of the input: %s',
    (_name, { input, audit }) => {
      const fields = Object.keys((input as { properties: object }).properties)
      const secrets = fields.filter((field) => /password|secret|token|key$/i.test(field))
      const given = Object.fromEntries(fields.map((field) => [field, `canary of ${field}`]))
      const text = (audit as (input: object) => string)(given)
      for (const field of secrets) expect(text).not.toContain(given[field])
      expect(text).not.toBe('')
    },
  )
})
