import { readdir, readFile, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { inject } from 'vitest'
import { bootHost, type Host, type HostOptions } from './host.ts'
import { askSocket, curl, type Ask, type Reply } from './http.ts'
import './global-setup.ts'

/** A booted machine with the package of the platform installed. */
export interface Edgeplatform extends Host {
  /** A request to port 443, from inside the machine. */
  ask(method: string, path: string, ask?: Ask): Promise<Reply>
  /** A request of root over the local socket; gives status and body. */
  asRoot(method: string, path: string, body?: unknown): Promise<{ status: number; text: string }>
  /** Trusts the present certificate of the platform. */
  trust(): Promise<void>
  /** A property of edgeplatformd.service, as `systemctl show` gives it. */
  property(name: string): Promise<string>
}

/** Boots a machine and installs the package of the platform with dpkg only. */
export async function bootEdgeplatform(options: HostOptions): Promise<Edgeplatform> {
  const host = await bootHost(options)
  const trust = async () =>
    writeFile(host.cacert, await host.read('/var/lib/edgeplatform/tls/certificate.pem'))
  try {
    await host.write('/root/edgeplatform.deb', await readFile(await platformPackage()))
    await host.output(['dpkg', '--install', '/root/edgeplatform.deb'], {
      env: { DEBIAN_FRONTEND: 'noninteractive' },
    })
    await trust()
  } catch (error) {
    await host.unplug()
    throw error
  }
  return {
    ...host,
    trust,
    get leader() {
      return host.leader
    },
    ask: (method, path, ask) =>
      curl(host.leader, method, `https://localhost${path}`, { cacert: host.cacert, ...ask }),
    asRoot: (method, path, body) =>
      askSocket(`/proc/${host.leader}/root/run/edgeplatform/edgeplatform.sock`, method, path, body),
    property: async (name) =>
      (await host.output(['systemctl', 'show', '--property', name, '--value', 'edgeplatformd'])).trim(),
  }
}

/** The package of the platform, which `make package` makes beside that of a host. */
async function platformPackage(): Promise<string> {
  const dist = dirname(inject('deb'))
  const [name] = (await readdir(dist)).filter((each) => /^edgeplatform_.*_amd64\.deb$/.test(each))
  if (name === undefined) throw new Error(`make package left no edgeplatform_*_amd64.deb in ${dist}`)
  return join(dist, name)
}
