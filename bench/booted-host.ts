import { execFileSync } from 'node:child_process'
import { boot } from '../test/e2e/host/boot.ts'

/** A host that systemd has booted, where each tool that an operator would ask has an answer. */
export interface BootedHost {
  /** Command in front of one that is to run inside. */
  readonly enter: readonly string[]
  unplug(): Promise<void>
}

// Containers get their time from outside, so the unit would not start in one.
const setUp = `
mkdir -p /etc/systemd/system/systemd-timesyncd.service.d
printf '[Unit]\\nConditionVirtualization=\\n' > /etc/systemd/system/systemd-timesyncd.service.d/bench.conf
ip link set lo up
ip link add host0 type bridge
ip address add 192.0.2.2/24 dev host0
ip link set host0 up
ip route add default via 192.0.2.1
systemctl daemon-reload
systemctl start systemd-resolved systemd-timesyncd
resolvectl dns
timedatectl show-timesync
`

/**
 * @param folders seen inside under their own paths
 * @throws Error saying what is missing
 */
export async function bootHost(folders: readonly string[]): Promise<BootedHost> {
  const { leader, unplug } = await boot({
    lower: 'services',
    nspawn: folders.map((folder) => `--bind-ro=${folder}`),
  })
  const enter = ['nsenter', `--target=${leader}`, '--all', '--']
  try {
    execFileSync('nsenter', [...enter.slice(1), 'sh', '-ec', setUp], {
      stdio: ['ignore', 'ignore', 'inherit'],
    })
    return { enter, unplug }
  } catch (error) {
    await unplug()
    throw error
  }
}
