import type { KubernetesObject } from './client.ts'
import { conditionOf, conditionsOf, isTrue, numberAt } from './fields.ts'
import { groupKindOf } from './paths.ts'
import { readinessRules, type Readiness } from './readiness-rules.ts'

/**
 * Says how far an object is, from the object alone, by the rules of kstatus, which kubectl's successors and GitOps controllers use too:
 * https://github.com/kubernetes-sigs/cli-utils/tree/master/pkg/kstatus. An object of a kind without a rule is Current when it exists,
 * unless its conditions say something else.
 * @param now milliseconds since 1970
 */
export function readiness(object: KubernetesObject, now: number): Readiness {
  const { deletionTimestamp, generation } = object.metadata
  if (deletionTimestamp !== undefined && deletionTimestamp !== '')
    return { status: 'Terminating', message: 'it is being deleted' }
  const observed = numberAt(object, ['status', 'observedGeneration'])
  if (generation !== undefined && observed !== undefined && observed !== generation)
    return { status: 'InProgress', message: 'its controller has not seen the last change yet' }
  for (const { type, status, message } of conditionsOf(object)) {
    if (type === 'Reconciling' && isTrue(status)) return { status: 'InProgress', message }
    if (type === 'Stalled' && isTrue(status)) return { status: 'Failed', message }
  }
  const rule = readinessRules.get(groupKindOf(object))
  return rule?.(object, now) ?? byReadyCondition(object)
}

/** For kinds without a rule, mostly custom resources. */
function byReadyCondition(object: KubernetesObject): Readiness {
  const ready = conditionOf(object, 'Ready')
  if (ready === undefined || isTrue(ready.status)) return { status: 'Current', message: '' }
  return { status: 'InProgress', message: ready.message || ready.reason || 'it is not ready' }
}
