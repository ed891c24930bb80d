import type { GivenVariable } from '../../definition/rules/variables.ts'
import type { ClusterProfileDetail } from '../../definition/schemas.ts'
import type { PreparedDefinition } from '../prepare/prepared.ts'
import type { Wanted } from '../wanted.ts'

/** A cluster as it is or as it would be; one revision of it. */
export interface DiffSide {
  readonly wanted: Wanted
  readonly definition: PreparedDefinition
  /** `details.json` of the revision: defaults of sensitive variables are masked. */
  readonly profiles: readonly ClusterProfileDetail[]
  /** `spec.profileVariables` in plain text. */
  readonly given: readonly GivenVariable[]
}
