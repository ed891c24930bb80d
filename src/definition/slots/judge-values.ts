import { join } from 'node:path'
import { profilesFile, type CountedProfiles, type StoredProfiles } from '../examination/protocol.ts'
import type { GivenVariable, ValidatedVariable, VariableRules } from '../rules/variables.ts'
import type { DefinitionStore } from './definition-store.ts'
import { slotNames } from './definition-table.ts'
import type { Examiner } from './examiner.ts'

/**
 * Judges values for the variables of a definition.
 * @param uid of the definition
 * @returns undefined if its files were removed
 * @throws AppError of `Examiner.judge`
 */
export type JudgeValues = (
  uid: string,
  given: readonly GivenVariable[],
) => Promise<readonly ValidatedVariable[] | undefined>

// About 20 ms of the event loop, the compilation of patterns included.
const requestSteps = 200_000
// Bytes of a file that is read and parsed on the event loop: a few milliseconds.
const sizeLimit = 524_288
// RE2JS caches states, up to 16 MiB a pattern, and the cache grows with the searches. So rules are dropped after this many steps.
const stepsKept = 2_000_000
// One set of rules for each slot.
const keptCount = slotNames.length

interface Kept {
  readonly rules: VariableRules
  steps: number
}

/**
 * Judges on the event loop if that takes only milliseconds, otherwise in a process of its own. A pattern is compiled on
 * the event loop only if its size is known: from the examination of the definition or, if an older version examined it,
 * from an earlier judgement by the process.
 */
export function createJudgeValues({
  store,
  examiner,
}: {
  readonly store: DefinitionStore
  readonly examiner: Examiner
}): JudgeValues {
  const kept = new Map<string, Kept>()
  const counted = new Map<string, CountedProfiles['patterns']>()

  async function read(uid: string): Promise<'gone' | 'heavy' | Kept> {
    const file = await store.open(uid, profilesFile)
    if (!file) return 'gone'
    try {
      const { size } = await file.stat()
      if (size > sizeLimit) return 'heavy'
      const stored = JSON.parse(await file.readFile('utf8')) as StoredProfiles
      const { profiles, patterns } =
        'profiles' in stored ? stored : { profiles: stored, patterns: counted.get(uid) }
      if (!patterns) return 'heavy'
      // The regex engine is larger than all other code here, so it is loaded when the first values are judged.
      const [{ createCountedPatterns }, { createVariableRules }] = await Promise.all([
        import('../rules/pattern.ts'),
        import('../rules/variables.ts'),
      ])
      const rules = createVariableRules(profiles, createCountedPatterns(new Map(patterns)))
      return { rules, steps: stepsKept }
    } finally {
      await file.close()
    }
  }

  const keep = <Value>(map: Map<string, Value>, uid: string, value: Value) => {
    map.set(uid, value)
    for (const each of [...map.keys()].slice(0, -keptCount)) map.delete(each)
  }

  function judgeHere(uid: string, own: Kept, given: readonly GivenVariable[]) {
    const work = { steps: requestSteps }
    const judged = own.rules.validateWithin(given, work)
    own.steps -= requestSteps - work.steps
    if (own.steps < 0) kept.delete(uid)
    else keep(kept, uid, own)
    return judged
  }

  return async (uid, given) => {
    const own = kept.get(uid) ?? (await read(uid))
    if (own === 'gone') return undefined
    const judged = own === 'heavy' ? undefined : judgeHere(uid, own, given)
    if (judged) return judged
    const { variables, patterns } = await examiner.judge({
      profiles: join(store.folder, uid, profilesFile),
      given,
    })
    keep(counted, uid, patterns)
    return variables
  }
}
