import { join } from 'node:path'
import { createKubeadmEngine } from '../src/cluster/engine/kubeadm.ts'
import { createClusterHost } from '../src/cluster/host/create-cluster-host.ts'
import { emptyHost, type Observed } from '../src/cluster/loop/observed.ts'
import { packSteps } from '../src/cluster/packs/pack-steps.ts'
import { plan, type PlanParts } from '../src/cluster/loop/plan.ts'
import type { DesiredState, DesiredPack } from '../src/cluster/desired/desired-state.ts'
import { runningHost, wantedCluster, wantedPack } from '../test/support/cluster-parts.ts'
import type { Measure } from './figure.ts'
import { spread } from './numbers.ts'
import type { Rig } from './rig.ts'

const packCount = 200

/** The plan of a cluster with 200 packs by the parts of the daemon: for a host without a cluster, and for one where it runs. */
export const measureClusterPlan: Measure = async (rig) => {
  const rounds = rig.isQuick ? 20 : 200
  const wanted = wantedOf(rig.folder)
  const parts = partsOf(rig)
  const before = {
    desired: wanted,
    observed: emptyHost,
    isDeleting: false,
    isRenewalAskedFor: false,
    isUpdate: false,
    hasRun: false,
  }
  const stepCount = plan(parts, before).flat().length
  const times = (observed: Observed, hasRun: boolean) =>
    Array.from({ length: rounds }, () => {
      const startedAt = performance.now()
      plan(parts, {
        desired: wanted,
        observed,
        isDeleting: false,
        isRenewalAskedFor: false,
        isUpdate: false,
        hasRun,
      })
      return performance.now() - startedAt
    })
  return [
    {
      name: `plan of a cluster with ${packCount} packs`,
      ...{ value: spread(times(emptyHost, false)), unit: 'ms', target: '≤ 50 ms' },
      note: `${stepCount} steps, ${rounds} times`,
    },
    {
      name: 'plan of the same cluster while it runs',
      ...{ value: spread(times(runningHost(wanted), true)), unit: 'ms', target: '≤ 50 ms' },
    },
  ]
}

const isNever = () => {
  throw new Error('a plan does not do input or output')
}

/** The parts of the daemon; a plan asks nothing of what they are made of. */
function partsOf({ folder }: Rig): PlanParts {
  const stateDirectory = join(folder, 'state-of-plan')
  const log = { debug: isNever, info: isNever, warn: isNever, error: isNever } as never
  const tools = { helm: '/nowhere/helm', kubeconfig: '/nowhere/admin.conf' }
  return {
    host: createClusterHost({
      ...{ stateDirectory, files: {} as never, runner: {} as never, architecture: 'amd64', cores: 2 },
      ...{ privileged: {} as never, now: Date.now, monotonic: () => performance.now() },
      ...{ sshAccount: 'root', stepProgram: '/nowhere/step.cjs' },
    }),
    engine: createKubeadmEngine({
      ...{ stateDirectory, content: {} as never, architecture: 'amd64', runner: {} as never, log },
      settings: { programs: { directory: '' } } as never,
      ...{ registry: isNever, certificate: isNever, client: {} as never, now: Date.now },
    }),
    packs: {
      steps: (wanted, pack, observed) => packSteps(tools, wanted, pack, observed),
      removeSteps: () => [],
    },
  }
}

/** Packs of every kind: each with a namespace of its own and one that all share, two charts and three manifests; forty orders. */
const wantedOf = (folder: string): DesiredState =>
  wantedCluster({
    folder,
    kubernetes: { pack: 'edge-k8s', version: '1.34.4', config: 'clusterConfiguration: {}\n', stages: [] },
    packs: Array.from({ length: packCount }, (_each, index) => packOf(index)),
  })

function packOf(index: number): DesiredPack {
  const name = `pack-${index}`
  const given = { labels: { pack: name }, annotations: {} }
  return {
    ...wantedPack(name, Math.floor(index / 5)),
    namespaces: [
      { name, ...given },
      { name: 'shared', ...given },
    ],
    charts: ['a', 'b'].map((each) => ({
      ...{ name: each, version: '1.0.0', release: `${name}-${each}`, namespace: name },
      ...{ file: `charts/${name}-${each}.tgz`, valuesFile: `values/${name}-${each}.yaml` },
    })),
    manifests: ['a', 'b', 'c'].map((each) => ({
      ...{ name: each, namespace: name, file: `manifests/${name}-${each}.json` },
    })),
  }
}
