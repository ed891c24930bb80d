import type { StateSource } from '../../root/room.ts'
import type { ClusterStore } from '../cluster-store.ts'
import type { Reading } from './reading.ts'

interface ClusterStatesOptions {
  readonly store: Pick<ClusterStore, 'current'>
  readonly reading: Pick<Reading, 'state' | 'steps' | 'revisions'>
}

const path = '/v1/edge-mgmt/cluster'
const detailsPath = `${path}/details`

/** The state of the cluster and its steps, for clients that follow. */
export const createClusterStates = ({ store, reading }: ClusterStatesOptions): readonly StateSource[] => [
  {
    type: 'cluster',
    access: 'viewer',
    paths: [
      ...[detailsPath, `${path}/applications`, `${path}/revisions`, `${path}/certificates`],
      ...['/v1/edge-mgmt/events/lifecycle', '/v1/edge-mgmt/edgehosts/current/attention'],
    ],
    read() {
      const record = store.current()
      if (!record) return null
      // Without the deadline, whose time moves by itself.
      const { clusterState, phase, clusterStateReason, health, troubles } = reading.state()
      const state = { clusterState, phase, clusterStateReason, health }
      const { uid, name, generation: revision } = record
      return { uid, name, revision, ...state, troubles: troubles.length }
    },
    behind() {
      if (!store.current()) return null
      const { clusterConditions, troubles, deadline } = reading.state()
      return [clusterConditions, troubles, deadline?.action, reading.steps(), reading.revisions()]
    },
  },
  {
    type: 'step',
    access: 'viewer',
    paths: [detailsPath],
    read() {
      if (!store.current()) return null
      const steps = reading.steps()
      const unfinished = steps.filter(({ state }) => state !== 'done')
      return { done: steps.length - unfinished.length, unfinished: unfinished.slice(0, mostSteps) }
    },
  },
]

const mostSteps = 20
