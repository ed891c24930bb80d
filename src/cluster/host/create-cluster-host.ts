import { basename, dirname, join } from 'node:path'
import { canonicalAddress } from '../../base/address.ts'
import { kernelTableBytes, passRefused } from '../../host/files.ts'
import { createOwnAddresses, addressUnit } from '../../host/network/network.ts'
import { clusterPaths, unitFolder } from '../engine/paths.ts'
import { missingAddress, readHostNetworks, addressUnitText, placeEndpoint } from './address.ts'
import { leftMark, type ClusterHost } from './cluster-host.ts'
import type { RecordOrder, RestoreOrder } from './actions.ts'
import type { HostFactsOptions } from './host-facts.ts'
import { createHostPreflight, readLacking } from './host-preflight.ts'
import { varLib } from './judge-host.ts'
import { foldersToProbe, judgeFolder, probeFolder } from './probe-folder.ts'
import { createHostSettings } from './settings.ts'
import type { Step } from '../loop/step.ts'
import type { DesiredNode } from '../desired/desired-state.ts'
import type { PreflightProblem } from '../desired/preflight-codes.ts'

export interface ClusterHostOptions extends Omit<HostFactsOptions, 'folders'> {
  /** Folder of the state. */
  readonly stateDirectory: string
  /** Account of this host that gets the SSH keys. */
  readonly sshAccount: string
  /** Path of `step.cjs`. */
  readonly stepProgram: string
  readonly monotonic: () => number
}

const minute = 60_000
const gibibyte = 2 ** 30

/** The host's part of the cluster. */
export function createClusterHost({ stateDirectory, ...options }: ClusterHostOptions): ClusterHost {
  const { files } = options
  const { hostRecord: record, ...notes } = clusterPaths(stateDirectory)
  const settings = createHostSettings({
    files,
    privileged: options.privileged,
    program: options.stepProgram,
    monotonic: options.monotonic,
    notes,
    account: options.sshAccount,
  })

  async function isHeld({ virtualAddress }: DesiredNode): Promise<boolean> {
    if (!virtualAddress) return true
    const own = createOwnAddresses(files)
    const [unit, enabled] = await Promise.all([
      passRefused(files).files.text(join(unitFolder, addressUnit)),
      files.link(join(unitFolder, 'multi-user.target.wants', addressUnit)),
      own.refresh(),
    ])
    return (
      unit === addressUnitText(virtualAddress) &&
      enabled !== undefined &&
      own.current().addresses.has(canonicalAddress(virtualAddress.address))
    )
  }

  const factsOptions: HostFactsOptions = {
    ...options,
    folders: [
      // The images of the control plane and their layers unpacked take about 1.5 GiB.
      { folder: stateDirectory, neededBytes: 2 * gibibyte },
      varLib,
      // Two files of its log of 64 MB each, its database, and snapshots of it.
      { folder: '/var/lib/etcd', neededBytes: gibibyte / 2 },
      // Volumes of pods.
      { folder: '/var/lib/kubelet', neededBytes: gibibyte / 4 },
      // Up to 50 MiB for each container, by the defaults of the kubelet.
      { folder: '/var/log', neededBytes: gibibyte / 16 },
    ],
  }
  const preflight = createHostPreflight(factsOptions)

  /** The folders with the programs of the cluster and the layers of its containers. */
  async function judgeFolders(): Promise<readonly PreflightProblem[]> {
    const mountinfo = await passRefused(files).files.text('/proc/1/mountinfo', kernelTableBytes)
    const folders = foldersToProbe(mountinfo ?? '', stateDirectory)
    const found = await Promise.all(folders.map((folder) => probeFolder(options.privileged, folder)))
    return found.flatMap(judgeFolder)
  }

  return {
    async preflight(desired, signal, running) {
      const found = await Promise.all([
        preflight(desired, signal, running),
        settings.preflight(desired.settings),
        judgeFolders(),
      ])
      return found.flat()
    },
    lacking: (running) => readLacking(factsOptions, running),
    placeEndpoint: async (host) => placeEndpoint(host, await readHostNetworks(files)),
    async observe({ node, settings: desired }) {
      // Its text, all rules and files of the host, is of use to the restore alone.
      const missing = missingAddress(node, await readHostNetworks(files))
      const isHostRecorded = (await files.names(dirname(record))).includes(basename(record))
      return {
        isHostRecorded,
        isAddressHeld: await isHeld(node),
        ...(missing === undefined ? {} : { missingAddress: missing }),
        settings: await settings.observe(desired),
      }
    },
    recordSteps: ({ isHostRecorded }) =>
      isHostRecorded
        ? []
        : [
            {
              key: 'record-host',
              title: 'Record the state of the host',
              timeoutMs: 5 * minute,
              work: {
                kind: 'action',
                action: 'record-host',
                order: { file: record } satisfies RecordOrder,
              },
            },
          ],
    addressSteps: ({ node: { virtualAddress } }, { isAddressHeld }) =>
      isAddressHeld || !virtualAddress
        ? []
        : [
            {
              key: 'hold-address',
              title: `Take the address ${virtualAddress.address} of the control plane`,
              timeoutMs: 2 * minute,
              work: { kind: 'action', action: 'hold-address', order: { ...virtualAddress } },
            },
          ],
    settingsSteps: (desired, observed) => settings.steps(desired.settings, observed.settings),
    restoreSteps: ({ kubernetes }, { isHostRecorded, settings: seen }) => [
      ...settings.restoreSteps(seen),
      ...(isHostRecorded ? recordedSteps(kubernetes.config, record) : []),
    ],
    eventOf: ({ key }, line) =>
      key === restoreKey && line.startsWith(leftMark)
        ? { reason: 'LeftoversFound', message: line }
        : undefined,
  }
}

const restoreKey = 'restore-host'

const recordedSteps = (config: string, file: string): readonly Step[] => [
  {
    key: 'drop-address',
    title: 'Give up the address of the control plane',
    timeoutMs: 2 * minute,
    work: { kind: 'action', action: 'drop-address', order: {} },
  },
  {
    key: restoreKey,
    title: 'Restore the recorded state of the host',
    timeoutMs: 15 * minute,
    work: { kind: 'action', action: 'restore-host', order: { file, config } satisfies RestoreOrder },
  },
]
