import { isOlder } from '../../change/version.ts'
import type { EngineObserved } from '../../observed.ts'
import type { Step, StepOrder } from '../../step.ts'
import type { Wanted } from '../../wanted.ts'

/** How the engine makes steps. */
export interface StepMaker {
  action(key: string, title: string, minutes: number, order?: StepOrder): Step
  /** A call of the daemon with what kubeadm is told of the wanted cluster. */
  call(key: string, title: string, minutes: number, wanted: Wanted): Step
  /** Steps that prepare what is wanted in the place of what runs. */
  prepare(wanted: Wanted): readonly Step[]
  /** The step that applies the wanted configuration to the control plane that runs. */
  reconfigure(wanted: Wanted): Step
}

/**
 * What is left to do from the version of Kubernetes that runs to the wanted one, by what is noted on the disk. Pure.
 *
 * | noted | wanted | steps |
 * |---|---|---|
 * | nothing | newer | all: prepare, check, copy, upgrade, configure, settle |
 * | nothing | older | restore, from a copy that is kept |
 * | copying, copied, upgrading, upgraded | the newer one | the rest of them |
 * | any of them | another one | restore |
 * | restoring | any | restore |
 */
export function versionSteps(make: StepMaker, wanted: Wanted, observed: EngineObserved): readonly Step[] {
  const { change, version, isPrepared, isConfigured } = observed
  const { generation, node, kubernetes } = wanted
  const restoreTo = (to: string): Step => ({
    ...make.action('kubernetes-restore', `Restore Kubernetes ${to}`, 20, { version: to }),
    isRestoration: true,
  })
  if (!change && isOlder(kubernetes.version, version)) return [restoreTo(kubernetes.version)]
  if (change && (change.phase === 'restoring' || change.to !== kubernetes.version))
    return [restoreTo(change.from)]

  const { from, to } = change ?? { from: version, to: kubernetes.version }
  const order: StepOrder = { from, to, generation: change?.generation ?? generation, node: node.name }
  const action = (key: string, title: string, minutes: number) => make.action(key, title, minutes, order)
  const phase = change?.phase ?? 'none'
  const isUpgraded = phase === 'upgraded'
  return [
    ...(phase === 'none'
      ? [
          make.call('place-next-programs', `Place the programs of Kubernetes ${to}`, 10, wanted),
          make.call('write-next-files', `Write the files of kubeadm ${to}`, 2, wanted),
          action('pull-next-images', `Pull the images of Kubernetes ${to}`, 30),
          action('kubernetes-check', 'Check the upgrade of Kubernetes', 15),
        ]
      : []),
    ...(phase === 'none' || phase === 'copying'
      ? [action('kubernetes-copy', `Copy Kubernetes ${from} to go back to`, 60)]
      : []),
    ...(isUpgraded ? [] : [action('kubernetes-upgrade', `Upgrade Kubernetes from ${from} to ${to}`, 60)]),
    ...(isUpgraded && isPrepared && isConfigured ? [] : [...make.prepare(wanted), make.reconfigure(wanted)]),
    action('kubernetes-settle', `Wait until Kubernetes ${to} is good`, 20),
  ]
}
