import { X509Certificate } from 'node:crypto'
import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { replaceFile } from '../../system/files.ts'
import { StepFailed, type StepAction } from '../loop/step.ts'
import { parseClient } from './certificates.ts'
import { commands } from './step-lines.ts'
import { clusterPaths, kubernetesFiles, unitFolder, units, type ClusterPaths } from './paths.ts'
import { kubeletUnit, nodeNameArgument } from './units.ts'

/**
 * A node keeps the name with which it was made, under any later name of the host: its certificate is for that name, and under another one
 * the kubelet may do nothing. The unit of the kubelet has the name, since `kubeadm upgrade` writes the file of its arguments anew.
 */
export const nodeNameStep = 'fix-node-name'

/** Order of `fix-node-name`. */
export interface NodeNameOrder {
  readonly stateDirectory: string
  /** For a kubelet without a certificate. */
  readonly node: string
}

export interface KubeletPaths {
  readonly unit: string
  readonly config: string
  /** Arguments that kubeadm has written for the kubelet. */
  readonly flags: string
}

const usualPaths: KubeletPaths = {
  unit: join(unitFolder, units.kubelet),
  config: join(kubernetesFiles.folder, 'kubelet.conf'),
  flags: '/var/lib/kubelet/kubeadm-flags.env',
}

/** The name of this host as the kubelet takes it for a node. */
export const hostNodeName = (): string => hostname().trim().toLowerCase()

/**
 * The name by which a kubelet goes whose unit has none: the one that kubeadm has written beside it, as for a node with a name of its own,
 * otherwise the host's.
 */
export async function unfixedName({ flags }: Pick<KubeletPaths, 'flags'> = usualPaths): Promise<string> {
  const text = await readFile(flags, 'utf8').catch(() => '')
  return new RegExp(`${nodeNameArgument}([^\\s"']+)`).exec(text)?.[1] ?? hostNodeName()
}

/** The name of the node in the certificate of the kubelet; undefined where it has none that can be read. */
export async function certifiedName({ config }: Pick<KubeletPaths, 'config'> = usualPaths): Promise<
  string | undefined
> {
  try {
    const { file, certificate } = parseClient(await readFile(config, 'utf8'))
    const { subject } = new X509Certificate(file === undefined ? (certificate ?? '') : await readFile(file))
    return /^CN=system:node:(\S+)$/m.exec(subject)?.[1]
  } catch {
    return undefined
  }
}

/** Whether the unit of the kubelet has the name of the node; true where there is no unit. */
export async function isNameFixed({ unit }: Pick<KubeletPaths, 'unit'> = usualPaths): Promise<boolean> {
  const text = await readFile(unit, 'utf8').catch(() => undefined)
  return text === undefined || text.includes(` ${nodeNameArgument}`)
}

/** Writes the unit of the kubelet, and starts a kubelet again that goes by another name. @param name where it has no certificate */
export async function writeKubeletUnit(paths: ClusterPaths, name: string): Promise<void> {
  const node = (await certifiedName()) ?? name
  const text = kubeletUnit(paths, node)
  const present = await readFile(usualPaths.unit, 'utf8').catch(() => undefined)
  if (present === text) return
  await replaceFile(usualPaths.unit, text, 0o644)
  await commands.run('systemctl', ['daemon-reload'])
  if (present === undefined || node === (await unfixedName())) return
  const failed = await commands.attempt('systemctl', ['try-restart', units.kubelet], { timeoutMs: 90_000 })
  if (failed !== undefined)
    throw new StepFailed(`the kubelet does not start again; see: journalctl -u ${units.kubelet}`)
}

/** For a cluster that was made without it. */
export const fixNodeName: StepAction = async (given, print) => {
  const { stateDirectory, node } = given as unknown as NodeNameOrder
  if (!existsSync(usualPaths.unit)) return
  await writeKubeletUnit(clusterPaths(stateDirectory), node)
  print(`[node] the kubelet keeps the name of the node, ${(await certifiedName()) ?? node}`)
}
