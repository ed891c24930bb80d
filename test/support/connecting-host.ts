import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { loadConfig, parseCommandLine } from '../../src/edgehostd/declarations.ts'
import { connectHost, type ConnectRequest } from '../../src/connect/connect.ts'
import { disconnectHost } from '../../src/connect/disconnect.ts'
import { placesOf } from '../../src/connect/files.ts'
import type { ThisHost } from '../../src/connect/host.ts'
import { createClient } from '../../src/ctl/client.ts'
import { hostSessions } from '../../src/edgehostctl/host-sessions.ts'
import { createTransport } from '../../src/ctl/transport.ts'
import type { EdgeHostInfo } from '../../src/host/schemas.ts'
import { createPlatformClient } from '../../src/uplink/client.ts'
import { openHostKey } from '../../src/uplink/host-key.ts'
import type { PlatformLink } from '../../src/uplink/schemas.ts'
import { hostBody } from './host-body.ts'
import { clusterUid } from './played-download.ts'
import { json, playCluster } from './played-cluster.ts'

/** What an airgapped host answers at `GET /v1/edge-mgmt/platform`. */
export const airgapped: PlatformLink = {
  ...{ mode: 'airgap', registrationStatus: 'not applicable', isConnected: false },
  events: { waiting: 0, dropped: 0 },
}

/**
 * A host that is to be connected: real files and the real reading of the configuration, and a daemon that is played. At a restart the
 * daemon does what its files say: it registers at the platform with its key and the token, and removes the token.
 */
export async function createConnectingHost(hostId = 'press-3') {
  const folder = mkdtempSync(join(tmpdir(), 'connecting-host-'))
  const stateDirectory = join(folder, 'state')
  const path = join(folder, 'daemon.sock')
  const configFile = join(folder, 'etc', 'config.yaml')
  mkdirSync(join(folder, 'etc', 'config.d'), { recursive: true })
  mkdirSync(stateDirectory)
  writeFileSync(configFile, `state:\n  directory: ${stateDirectory}\napi:\n  socket:\n    path: ${path}\n`)
  const places = placesOf(configFile, stateDirectory, join(folder, 'run'))

  const info = JSON.parse(await hostBody()) as EdgeHostInfo
  const played = {
    hasCluster: false,
    link: airgapped,
    mode: 'airgap',
    name: 'Press 3, hall B',
    restarts: 0,
    /** How `systemctl restart` ends. */
    restartCode: 0,
    beforeRegistration: async () => {},
  }
  const start = () =>
    playCluster(path, {
      'GET /v1/edge-mgmt/edgehosts/current': (...request) =>
        json(200, {
          ...info,
          metadata: { ...info.metadata, id: hostId, name: played.name },
          spec: { ...info.spec, connectionMode: played.mode },
        })(...request),
      'GET /v1/edge-mgmt/platform': (...request) => json(200, played.link)(...request),
      'GET /v1/edge-mgmt/cluster': (...request) =>
        (played.hasCluster
          ? json(200, { metadata: { name: 'edge-1', id: clusterUid } })
          : json(404, { code: 'NotFound', message: 'no cluster' }))(...request),
    })
  let daemon: Awaited<ReturnType<typeof start>> | undefined = await start()
  const stopDaemon = async () => {
    await daemon?.stop()
    daemon = undefined
  }

  const load: ThisHost['load'] = (planned, isWhole) =>
    loadConfig({
      ...{ commandLine: parseCommandLine([`--config=${configFile}`]), environment: {} },
      ...(planned ? { planned } : {}),
      ...(isWhole ? { onUnseen: () => undefined } : {}),
    })

  /** What the daemon does at its start. */
  async function restart(): Promise<void> {
    played.restarts += 1
    const { config } = (await load(undefined, true)) as Awaited<ReturnType<typeof loadConfig>>
    played.mode = config.host.mode
    const { url, caFile, fingerprint, registrationTokenFile = '' } = config.platform
    if (config.host.mode === 'airgap' || url === undefined) {
      played.link = airgapped
      return
    }
    const client = createPlatformClient({
      ...{ url, now: () => Date.now() },
      ...(caFile === undefined ? {} : { ca: readFileSync(caFile, 'utf8') }),
      ...(fingerprint === undefined ? {} : { fingerprint }),
    })
    const { publicKey } = await openHostKey(stateDirectory)
    const hasToken = existsSync(registrationTokenFile)
    await played.beforeRegistration()
    const answer = await client.call({
      ...{ method: 'POST', path: '/v1/edgehosts/register' },
      body: {
        metadata: { name: hostId },
        spec: {
          host: {
            ...{ hostUid: hostId, hostAddress: '' },
            hostAuthToken: hasToken ? readFileSync(registrationTokenFile, 'utf8').trim() : '',
            hostIdentity: { mode: 'signature', publicKey },
          },
        },
      },
    })
    client.close()
    if (!answer.cause && hasToken) rmSync(registrationTokenFile)
    played.link = {
      ...{ mode: 'connected', url, events: airgapped.events },
      ...(answer.cause
        ? { registrationStatus: 'pending', isConnected: false, cause: answer.cause }
        : { registrationStatus: 'registered', isConnected: true }),
    }
  }

  const said: string[] = []
  const transport = createTransport(
    { kind: 'socket', path },
    { expected: undefined, ask: () => undefined, say: () => undefined },
  )
  const client = createClient({
    ...{ target: { kind: 'socket', path }, transport, user: undefined, protocol: hostSessions },
  })
  const host: ThisHost = {
    ...{ places, stateDirectory, client, load },
    say: (text, mood) => void said.push(mood === undefined ? text : `${mood}: ${text}`),
    runner: {
      async run(program, args) {
        if ([program, ...args].join(' ') !== 'systemctl restart edgehostd.service') throw new Error(program)
        if (played.restartCode === 0) await restart()
        return { exitCode: played.restartCode, stdout: '', stderr: 'Job for edgehostd.service failed.\n' }
      },
    },
  }

  return {
    ...{ host, places, played, said, folder, path, stopDaemon, configFile },
    connect: (
      wish: ConnectRequest,
      options: { readonly now?: () => number; readonly timeoutMs?: number } = {},
    ) => connectHost({ ...host, request: wish, now: () => Date.now(), waitMs: 0, ...options }),
    disconnect: (confirm: (what: string) => void = () => undefined) => disconnectHost({ ...host, confirm }),
    writeDropIn: (name: string, text: string) => writeFileSync(join(folder, 'etc', 'config.d', name), text),
    /** Files of a connection that are there. */
    present: () =>
      [places.dropIn, places.authorities, places.token].filter((file) => existsSync(file)).length,
    mode: async () => ((await load(undefined, true)).config as { host: { mode: string } }).host.mode,
    async stop() {
      transport.close()
      await stopDaemon()
      rmSync(folder, { recursive: true })
    },
  }
}
