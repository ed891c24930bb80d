import type { StoredEventLog } from './create-event-log.ts'
import type { StoredCondition } from './event-store.ts'
import { conditionTypes, type ConditionType } from './condition-types.ts'
import { expectedOrder } from './reasons.ts'
import type { LifecycleEvents } from './schemas.ts'

type Condition = LifecycleEvents['clusterEvents'][number]

/** The conditions of the newest cluster or of this host for it, in the order in which they come up. */
export const conditionsOf = (events: StoredEventLog, of: ConditionType['of']): Condition[] =>
  events
    .conditions()
    .filter(({ type }) => (conditionTypes as Readonly<Record<string, ConditionType>>)[type]?.of === of)
    .map(toCondition)

/** What was reached of what every cluster goes through. */
export const lifecycleOf = (events: StoredEventLog): LifecycleEvents => ({
  clusterEvents: conditionsOf(events, 'cluster'),
  edgeHostEvents: conditionsOf(events, 'host'),
  expectedOrder: expectedOrder(),
})

const toCondition = ({
  type,
  status,
  reason,
  message,
  transitionAt,
  probeAt,
}: StoredCondition): Condition => ({
  ...{ type, status, reason, message },
  lastTransitionTime: new Date(transitionAt).toISOString(),
  lastProbeTime: new Date(probeAt).toISOString(),
})
