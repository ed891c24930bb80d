import type { ConditionTypeName } from './condition-types.ts'

/** A reason of an event. */
export interface Reason {
  /** Type of the condition that it belongs to. */
  readonly type: ConditionTypeName
  readonly label: string
  /** What it makes of the condition; absent where it leaves the condition as it is. */
  readonly status?: 'True' | 'False' | 'Unknown'
  /** By default Normal. */
  readonly severity?: 'Warning'
  /** Whether every cluster that comes up has it. */
  readonly isExpected?: true
  readonly meaning: string
}
