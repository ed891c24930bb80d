import { readFile, writeFile } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, inject } from 'vitest'
import { bootHost, type Host, type HostOptions } from './host.ts'
import type { Ask, Reply } from './http.ts'
import { output } from './process.ts'
import './global-setup.ts'

/** The tokens of a login. */
export interface Session {
  readonly token: string
  readonly refreshToken: string
}

/** A booted host with the package installed. */
export interface Edgehostd extends Host {
  login(username: string, password: string, ask?: Ask): Promise<Reply>
  /** A login that has to succeed. */
  openSession(username: string, password: string, ask?: Ask): Promise<Session>
  renew(refreshToken: string, ask?: Ask): Promise<Reply>
  /** The status a token gets for a read. */
  statusOf(token: string): Promise<number>
  /** Writes a configuration drop-in and restarts the daemon; returns when it is ready again. */
  configure(name: string, yaml: string): Promise<void>
  /** Writes a drop-in of the unit and restarts the daemon. */
  configureUnit(name: string, text: string): Promise<void>
  /** A property of edgehostd.service, as `systemctl show` gives it. */
  property(name: string): Promise<string>
  mainPid(): Promise<number>
  /** Lines the daemon logged, parsed. */
  log(): Promise<LogLine[]>
  /** Trusts the present certificate of the daemon; returns its SHA-256. */
  trust(): Promise<void>
  /** Every password and token that was sent or received so far. */
  readonly secrets: ReadonlySet<string>
}

/** A line of the daemon's log. */
export type LogLine = Readonly<Record<string, unknown>> & { readonly msg: string; readonly priority: number }

/** For a test that polls more often than the rate limit allows. Without it the default limits apply. */
export const unlimited = 'api: {rateLimits: {enabled: false}}\n'

export interface EdgehostdOptions extends HostOptions {
  /** The package; by default that under test. */
  readonly deb?: string
}

/** Boots a host and installs the package on it; requests are not limited there. */
export async function bootEdgehostd(options: EdgehostdOptions): Promise<Edgehostd> {
  const host = await bootHost(options)
  const edgehostd = asEdgehostd(host)
  try {
    // In the unit and not in /etc/edgehostd, whose content only the package makes.
    const noLimits = '[Service]\nEnvironment=EDGEHOSTD_API_RATE_LIMITS_ENABLED=false\n'
    await host.write('/etc/systemd/system/edgehostd.service.d/requests.conf', noLimits)
    await installPackage(host, await readFile(options.deb ?? inject('deb')))
    await edgehostd.trust()
  } catch (error) {
    await host.unplug()
    throw error
  }
  return edgehostd
}

/** Installs a package with dpkg only. @returns what the installation prints */
export async function installPackage(host: Host, deb: Buffer): Promise<string> {
  await host.write('/root/edgehostd.deb', deb)
  return host.output(['dpkg', '--install', '/root/edgehostd.deb'], {
    env: { DEBIAN_FRONTEND: 'noninteractive' },
  })
}

/** Adds the functions for the daemon to a host. */
export function asEdgehostd(host: Host): Edgehostd {
  const secrets = new Set<string>()
  const keep = (reply: Reply) => {
    const { Authorization, RefreshToken } = reply.json?.Token ?? reply.json ?? {}
    for (const token of [Authorization, RefreshToken]) if (typeof token === 'string') secrets.add(token)
    return reply
  }
  const edgehostd: Edgehostd = {
    ...host,
    get leader() {
      return host.leader
    },
    secrets,
    async http(method, path, ask) {
      const { password, oldPassword, newPassword } = (ask?.body ?? {}) as Record<string, unknown>
      for (const secret of [password, oldPassword, newPassword]) {
        if (typeof secret === 'string' && secret.length >= 8) secrets.add(secret)
      }
      return keep(await host.http(method, path, ask))
    },
    login: (username, password, ask) =>
      edgehostd.http('POST', '/v1/users/default/login', { ...ask, body: { username, password } }),
    async openSession(username, password, ask) {
      const reply = await edgehostd.login(username, password, ask)
      expect(reply, `login of ${username}`).toMatchObject({ status: 200 })
      return { token: reply.json.Token.Authorization, refreshToken: reply.json.Token.RefreshToken }
    },
    renew: (refreshToken, ask) =>
      edgehostd.http('POST', '/v1/users/default/token/renewal', { ...ask, body: { refreshToken } }),
    statusOf: async (token) => (await edgehostd.http('GET', '/v1/users/current', { token })).status,
    async configure(name, yaml) {
      await host.write(`/etc/edgehostd/config.d/${name}.yaml`, yaml)
      await host.output(['systemctl', 'restart', 'edgehostd'])
    },
    async configureUnit(name, text) {
      await host.write(`/etc/systemd/system/edgehostd.service.d/${name}.conf`, text)
      await host.sh('systemctl daemon-reload; systemctl restart edgehostd')
    },
    property: async (name) =>
      (await host.output(['systemctl', 'show', '--property', name, '--value', 'edgehostd'])).trim(),
    mainPid: async () => Number(await edgehostd.property('MainPID')),
    async log() {
      return (await settledJournal(host)).flatMap(({ message, priority }) => {
        if (!message.startsWith('{')) return []
        const line = JSON.parse(message) as Record<string, unknown>
        return [{ ...line, msg: String(line.msg), priority }]
      })
    },
    trust: () => trust(host),
  }
  return edgehostd
}

/** journald is behind the daemon for a moment: a line comes after the reply that it is about. */
async function settledJournal(host: Host) {
  let lines = await host.journal('edgehostd')
  for (let look = 0; look < 5; look += 1) {
    await sleep(100)
    const later = await host.journal('edgehostd')
    if (later.length === lines.length) return later
    lines = later
  }
  return lines
}

async function trust(host: Host): Promise<void> {
  const shown = await output('nsenter', [
    ...['-t', String(host.leader), '-n', 'openssl', 's_client', '-connect', '127.0.0.1:5080', '-showcerts'],
  ])
  const certificate = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----\n/.exec(shown)?.[0]
  if (!certificate) throw new Error(`no certificate in:\n${shown}`)
  await writeFile(host.cacert, certificate)
}
