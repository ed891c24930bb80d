import type { Edgehostd } from './edgehostd.ts'

export const timesyncd = 'systemd-timesyncd.service'
/** The drop-in with the NTP servers of a cluster. */
export const ntpDropIn = '/etc/systemd/timesyncd.conf.d/zz-edgehostd-cluster.conf'
/** An account of the host, for SSH keys. */
export const mechanic = 'mechanic'

/** Has systemd's own time service, with a server of the site, and an account on the host. */
export async function addTimeServiceAndAccount(host: Edgehostd): Promise<void> {
  // timesyncd keeps away from containers and may not set this clock; what it would ask is all that matters here.
  await host.write(
    `/etc/systemd/system/${timesyncd}.d/container.conf`,
    '[Unit]\nConditionVirtualization=\nConditionCapability=\n[Service]\nAmbientCapabilities=\nCapabilityBoundingSet=\nExecStart=\nExecStart=/lib/systemd/systemd-timesyncd\n',
  )
  await host.write('/etc/systemd/timesyncd.conf.d/site.conf', '[Time]\nNTP=10.77.0.9\n')
  await host.sh('systemctl daemon-reload')
  await host.sh(`useradd --create-home --shell /bin/sh ${mechanic}; chmod 700 /home/${mechanic}`)
}

/** The servers that the running timesyncd has from its files. */
export const servedBy = async (host: Edgehostd): Promise<string> =>
  (
    await host.output([
      ...['busctl', 'get-property', 'org.freedesktop.timesync1', '/org/freedesktop/timesync1'],
      ...['org.freedesktop.timesync1.Manager', 'SystemNTPServers'],
    ])
  ).trim()
