import { readFile } from 'node:fs/promises'
import { createPatterns } from '../rules/pattern.ts'
import { createVariableRules } from '../rules/variables.ts'
import type { Judgement, JudgementOrder, StoredProfiles } from './protocol.ts'

/** Judges values without a limit of steps, and counts the patterns, since an older version may not have counted them. */
export async function judge({ profiles: file, given }: JudgementOrder): Promise<Judgement> {
  const stored = JSON.parse(await readFile(file, 'utf8')) as StoredProfiles
  const patterns = createPatterns()
  const rules = createVariableRules('profiles' in stored ? stored.profiles : stored, patterns)
  return { variables: rules.validate(given), patterns: patterns.verdicts() }
}
