import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { isRecord } from '../../base/json.ts'
import { escapeInvisible, shellWord } from '../../base/printable.ts'
import { becomeProgram } from '../../ctl/become.ts'
import type { Context } from '../../ctl/client.ts'
import { noCluster, requireDetails } from '../../ctl/cluster.ts'
import { Failure } from '../../ctl/exit-codes.ts'
import { oneLine } from '../../ctl/layout.ts'
import type { HostTarget } from '../../ctl/target.ts'
import { systemReason } from '../../errors/system-reason.ts'
import { askProgram, findInPath, isExecutable, runAttached } from '../../system/attached.ts'
import { kubectlCache, kubectlOf, kubernetesFiles, unitFolder, units } from '../engine/paths.ts'
import { requireKubeconfig } from './get.ts'

/** `edgehostctl cluster kubectl`. Ends the process with the exit status of kubectl. */
export async function runKubectl(context: Context): Promise<undefined> {
  const { line, target } = context
  if (target.kind === 'socket') becomeOwnKubectl(line.arguments)
  process.exit(await runElsewhere(context, target))
}

/** The command as it is typed, for another machine or account. */
const typed = (args: readonly string[]): string =>
  escapeInvisible(`edgehostctl cluster kubectl -- ${args.map(shellWord).join(' ')}`.trimEnd())

/** On the host itself: the kubectl of the cluster, with the file of its administrator. It needs no daemon. */
function becomeOwnKubectl(args: readonly string[]): never {
  if (process.getuid?.() !== 0)
    throw new Failure(
      'notLoggedIn',
      `only root may read the kubeconfig of this host: sudo ${typed(args)}; or log in, and use a kubectl of your own: edgehostctl --host localhost login`,
    )
  const kubectl = kubectlOf(readText(join(unitFolder, units.kubelet)))
  if (kubectl === undefined) throw noCluster()
  if (readText(kubernetesFiles.adminConfig) === '' || !isExecutable(kubectl))
    throw new Failure(
      'failed',
      `the control plane of the cluster is not set up yet (${kubernetesFiles.adminConfig}); see: edgehostctl cluster watch`,
    )
  // By default kubectl keeps what it has seen of the API in the home folder, also when the cluster is gone.
  return becomeProgram(kubectl, args, {
    KUBECACHEDIR: kubectlCache,
    ...process.env,
    KUBECONFIG: kubernetesFiles.adminConfig,
  })
}

/** The text of a file; empty where it is not there. @throws Failure where it cannot be read */
function readText(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return ''
    throw new Failure('failed', `${path} cannot be read: ${systemReason(error as Error)}`, { cause: error })
  }
}

const versionMs = 10_000

/** On another machine: its own kubectl, with the kubeconfig that the host gives to an administrator. */
async function runElsewhere(context: Context, target: HostTarget): Promise<number> {
  const { line, output, terminal } = context
  const environment = process.env
  const args = line.arguments
  // First: a kubeconfig is not delivered in vain.
  const kubectl = findInPath('kubectl', environment)
  if (kubectl === undefined) {
    const { status } = await requireDetails(context)
    throw new Failure(
      'failed',
      `there is no kubectl in PATH; install the one of Kubernetes ${oneLine(status.k8sVersion)}, which the cluster has, or use that of the host: ssh root@${target.host} ${typed(args)}`,
    )
  }
  const [{ kubeconfig, version }, shown] = await Promise.all([
    requireKubeconfig(context),
    askProgram(kubectl, ['version', '--client', '-o', 'json'], { environment, timeoutMs: versionMs }),
  ])
  const own = versionIn(shown ?? '')
  const notice = skewNotice(kubectl, own, version)
  if (notice !== undefined) output.note(notice)
  const file = { variable: 'KUBECONFIG', content: kubeconfig }
  try {
    return await runAttached(kubectl, args, { environment, file, hasTerminal: terminal.isThere() })
  } catch (error) {
    const { path = kubectl } = error as NodeJS.ErrnoException
    const reason = systemReason(error as Error)
    const problem =
      path === kubectl
        ? `${path} cannot be run: ${reason}`
        : `${path} cannot be written: ${reason}; see TMPDIR`
    throw new Failure('failed', problem, { cause: error })
  }
}

/** The version that `kubectl version --client -o json` shows, without `v`; undefined where it shows none. */
function versionIn(shown: string): string | undefined {
  try {
    const { clientVersion } = JSON.parse(shown) as { clientVersion?: unknown }
    const text = isRecord(clientVersion) ? clientVersion.gitVersion : undefined
    return typeof text === 'string' ? text.replace(/^v/, '') : undefined
  } catch {
    return undefined
  }
}

/**
 * A word on a kubectl that Kubernetes does not support with a cluster: it may be one minor version older or newer
 * (https://kubernetes.io/releases/version-skew-policy/, "kubectl"). Pure.
 * @param own version of kubectl; undefined where it is not known
 * @param version of Kubernetes, as `1.34.4`
 * @returns undefined where both fit
 */
export function skewNotice(kubectl: string, own: string | undefined, version: string): string | undefined {
  const [mine, theirs] = [minorOf(own ?? ''), minorOf(version)]
  if (theirs === undefined) return undefined
  const advice = `The cluster has Kubernetes ${oneLine(version)}, and a kubectl of it, or of one minor version before or after it, is supported.`
  if (mine === undefined) return `edgehostctl: warning: ${kubectl} does not say its version. ${advice}`
  const isNear = mine.major === theirs.major && Math.abs(mine.minor - theirs.minor) <= 1
  return isNear
    ? undefined
    : `edgehostctl: warning: ${kubectl} is of version ${oneLine(own ?? '')}. ${advice}`
}

function minorOf(version: string): { major: number; minor: number } | undefined {
  const [, major, minor] = /^(\d+)\.(\d+)/.exec(version) ?? []
  return major === undefined ? undefined : { major: Number(major), minor: Number(minor) }
}
