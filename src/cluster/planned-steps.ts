import type { Stage } from './plan.ts'
import type { ClusterDryRun } from './schemas.ts'

/** A plan for the API. @param hide masks sensitive values, which may be in the names of releases and packs */
export const plannedSteps = (
  stages: readonly Stage[],
  hide: (text: string) => string,
): ClusterDryRun['plan'] =>
  stages.flat().map(({ key, title, pack, timeoutMs }) => ({
    ...{ key: hide(key), title: hide(title), timeoutSeconds: timeoutMs / 1_000 },
    ...(pack === undefined ? {} : { pack: hide(pack) }),
  }))
