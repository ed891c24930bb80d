import { type ClusterPaths, currentProgram, pathInUnit, unitFolder, unitHeading, units } from './paths.ts'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { StepFailed, type StepAction } from '../loop/step.ts'
import { commands } from './step-lines.ts'

/** The unit of our containerd. Source: containerd.service of containerd. */
export function containerdUnit(paths: ClusterPaths, mayLowerOomScore: boolean): string {
  return unitFile({
    Unit: [
      'Description=Container runtime of the cluster of edgehostd',
      'After=network.target local-fs.target',
      'StartLimitIntervalSec=0',
    ],
    Service: [
      'Type=notify',
      // Its shims have their sockets there. They would make it with a mode that hides from the daemon that no other containerd has its
      // socket in it.
      'ExecStartPre=-/usr/bin/mkdir --parents --mode=711 /run/containerd',
      `ExecStart=/usr/bin/containerd --config ${pathInUnit(paths.containerdConfig)}`,
      'Delegate=yes',
      // Pods live on while containerd is restarted.
      'KillMode=process',
      'Restart=always',
      'RestartSec=1',
      'LimitNOFILE=infinity',
      'LimitNPROC=infinity',
      'LimitCORE=infinity',
      'TasksMax=infinity',
      // systemd may not set it either where no process may lower its own.
      ...(mayLowerOomScore ? ['OOMScoreAdjust=-999'] : []),
    ],
    Install: ['WantedBy=multi-user.target'],
  })
}

/** Begins the argument of the kubelet with the name of its node. */
export const nodeNameArgument = '--hostname-override='

/**
 * The unit of the kubelet, with the arguments of kubeadm. Source: kubelet.service and 10-kubeadm.conf of Kubernetes.
 * @param node its name; the last argument, which no other takes the place of
 */
export function kubeletUnit(paths: ClusterPaths, node: string): string {
  const program = pathInUnit(currentProgram(paths.programs, 'kubelet'))
  return unitFile({
    Unit: [
      'Description=kubelet of the cluster of edgehostd',
      `Wants=network-online.target ${units.containerd}`,
      `After=network-online.target ${units.containerd} edgehostd-vip.service`,
      'StartLimitIntervalSec=0',
    ],
    Service: [
      'EnvironmentFile=-/var/lib/kubelet/kubeadm-flags.env',
      'EnvironmentFile=-/etc/default/kubelet',
      `ExecStart=${program} --bootstrap-kubeconfig=/etc/kubernetes/bootstrap-kubelet.conf --kubeconfig=/etc/kubernetes/kubelet.conf --config=/var/lib/kubelet/config.yaml $KUBELET_KUBEADM_ARGS $KUBELET_EXTRA_ARGS ${nodeNameArgument}${node}`,
      'Restart=always',
      'RestartSec=1',
    ],
    Install: ['WantedBy=multi-user.target'],
  })
}

function unitFile(sections: Readonly<Record<string, readonly string[]>>): string {
  const texts = Object.entries(sections).map(([name, lines]) => `[${name}]\n${lines.join('\n')}\n`)
  return `${unitHeading}${texts.join('\n')}`
}

/** Whether a unit in the folder of the administrator was written by edgehostd. */
export async function isOwnUnit(unit: string): Promise<boolean> {
  const text = await readFile(join(unitFolder, unit), 'utf8').catch(() => '')
  return text.startsWith(unitHeading)
}

/** Starts containerd and the kubelet again where they do not run, as after an administrator has stopped them. */
export const startUnits: StepAction = async () => {
  for (const unit of [units.containerd, units.kubelet]) {
    const failed = await commands.attempt('systemctl', ['start', unit], { timeoutMs: 90_000 })
    if (failed !== undefined) throw new StepFailed(`${unit} does not start; see: journalctl -u ${unit}`)
  }
}
