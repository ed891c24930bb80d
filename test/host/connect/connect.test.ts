import { X509Certificate } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import { dirname, join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { checkLink, writeLink, type ConnectRequest } from '../../../src/connect/connect.ts'
import { parsePlatformUrl } from '../../../src/connect/inputs.ts'
import { readOrder } from '../../../src/connect/order.ts'
import { staged, stageFiles } from '../../../src/connect/files.ts'
import { createConnectingHost } from '../../support/connecting-host.ts'
import { clusterUid } from '../../support/played-download.ts'
import { playEdgeHost } from '../../support/played-edge-host.ts'
import { createTestPlatform } from '../../support/test-platform.ts'

let platform: Awaited<ReturnType<typeof createTestPlatform>>
let host: Awaited<ReturnType<typeof createConnectingHost>>
let url: string
let ca: string
let fingerprint: string
let hosts = 0

beforeAll(async () => {
  platform = await createTestPlatform()
  await platform.start()
  url = `https://127.0.0.1:${(platform.app.server.address() as AddressInfo).port}`
  ca = readFileSync(join(platform.stateDirectory, 'tls', 'certificate.pem'), 'utf8')
  fingerprint = new X509Certificate(ca).fingerprint256
})
afterAll(() => platform.close())
beforeEach(async () => {
  host = await createConnectingHost(`press-${(hosts += 1)}`)
})
afterEach(() => host.stop())

let made = 0
const makeToken = (maximumHosts = 0) =>
  platform.rooms.hosts.tokens.create({ metadata: { name: `token ${(made += 1)}` }, spec: { maximumHosts } })
const wish = (more: Partial<ConnectRequest> = {}): ConnectRequest => ({
  ...{ url, authorities: ca, token: makeToken().token },
  ...more,
})
const registered = (uid = `press-${hosts}`) =>
  platform.rooms.state.database.sql.prepare('SELECT uid, name FROM edge_host WHERE host_uid = ?').get(uid)

/** The message of a refusal, after which nothing has changed. */
async function refusal(work: Promise<unknown>): Promise<string> {
  const before = { files: host.present(), restarts: host.played.restarts }
  const error = await work.then(
    () => undefined,
    (reason: unknown) => reason as Error,
  )
  expect({ files: host.present(), restarts: host.played.restarts }).toEqual(before)
  return error?.message ?? ''
}

describe('platform connect', () => {
  it('tells each check, writes what a connected host needs, and returns when it is connected', async () => {
    const link = await host.connect(wish())
    expect(link).toMatchObject({ isConnected: true, registrationStatus: 'registered', url })
    expect(host.said).toEqual([
      '  name: 127.0.0.1 is an address',
      ` route: ${url.slice(8)} accepts connections`,
      `   TLS: the certificate is accepted; its fingerprint is ${fingerprint}`,
      ' clock: agrees with that of the platform',
      ' token: is accepted; this host will be Press-3-hall-B, in no project',
      `written: ${host.places.dropIn}`,
      'edgehostd is restarted; waiting until it is connected',
    ])
    expect(readFileSync(host.places.authorities, 'utf8')).toBe(ca)
    expect(statSync(host.places.authorities).mode & 0o777).toBe(0o644)
    expect(statSync(dirname(host.places.token)).mode & 0o777).toBe(0o700)
    expect(await host.mode()).toBe('connected')
    expect(registered()).toBeDefined()
  })

  const tenantOf = async () => {
    const reply = await playEdgeHost(platform).ask('?dryRun=true', makeToken().token)
    return (JSON.parse(reply.text) as { aclmeta: { tenantUid: string } }).aclmeta.tenantUid
  }
  const keep = (tenantUid: string, uid = clusterUid) => {
    mkdirSync(join(host.host.stateDirectory, 'platform'), { recursive: true })
    const kept = { number: 3, etag: '3-0', outcome: 'applied', message: '', accepted: 3, revision: 1 }
    writeFileSync(
      join(host.host.stateDirectory, 'platform/wanted.json'),
      JSON.stringify({ tenantUid, uid, name: 'edge-1', ...kept }),
    )
  }

  it('an order of the daemon checks without a trace, then writes, and leaves the restart to the daemon', async () => {
    const { token } = makeToken()
    const order = JSON.stringify({ url, token, proxy: '', authorities: [ca] })
    const options = { ...host.host, ...readOrder(order, parsePlatformUrl), now: () => Date.now() }
    expect(await checkLink(options)).toMatchObject({ name: 'Press-3-hall-B', projectName: '' })
    expect([host.present(), registered(), host.played.restarts]).toEqual([0, undefined, 0])
    await writeLink(options)
    expect(readFileSync(host.places.token, 'utf8')).toBe(`${token}\n`)
    expect(await host.mode()).toBe('connected')
    expect([registered(), host.played.restarts]).toEqual([undefined, 0])
    // Its authority is one of the host, and no file of the platform.
    expect(existsSync(host.places.authorities)).toBe(false)
    const unknown = JSON.stringify({ url, token, proxy: '', authorities: [] })
    await expect(checkLink({ ...options, ...readOrder(unknown, parsePlatformUrl) })).rejects.toThrow(
      'does not know who issued the certificate',
    )
  })

  it.each([
    ['{', 'is not one of edgehostd'],
    ['{"url":"x"}', 'is not one of edgehostd'],
    ['{"url":"ftp://x","token":"","proxy":"","authorities":[]}', 'is not accepted'],
    ['{"url":"x","token":"two words","proxy":"","authorities":[]}', 'the token has more than one word'],
  ])('an order %s is refused', (order, reason) => {
    expect(() => readOrder(order, parsePlatformUrl)).toThrow(reason)
  })

  it('a cluster that this platform has made goes back to it', async () => {
    host.played.hasCluster = true
    keep(await tenantOf())
    expect(await host.connect(wish())).toMatchObject({ isConnected: true })
    expect(host.said).toContain('cluster: edge-1 was made by this platform, which takes it back')
  })

  it('one that another platform has made, or that was made here, keeps the host from it', async () => {
    host.played.hasCluster = true
    keep('another tenant')
    expect(await refusal(host.connect(wish()))).toMatch(
      /edge-1, which another platform has made.*Nothing was changed/,
    )
    keep(await tenantOf(), '0198c1f0-6f0e-7c3a-9d52-2f6d7c1b0a22')
    expect(await refusal(host.connect(wish()))).toContain('a cluster that was made here')
    expect(registered()).toBeUndefined()
  })

  it('asks the platform without a trace before it writes, and has the token on the disk for its owner alone', async () => {
    const { token, uid } = makeToken(1)
    host.played.restartCode = 1
    await expect(host.connect(wish({ token }))).rejects.toThrow(
      /the settings are in place, but the daemon did not restart: .*Job for edgehostd\.service failed\.\n.*journalctl/,
    )
    expect(registered()).toBeUndefined()
    expect(platform.rooms.hosts.tokens.get(uid).hosts).toBe(0)
    expect(readFileSync(host.places.token, 'utf8')).toBe(`${token}\n`)
    expect(statSync(host.places.token).mode & 0o777).toBe(0o600)
    // Again, now that the daemon can start: the one use of the token is still there.
    host.played.restartCode = 0
    await host.connect(wish({ token }))
    expect(registered()).toBeDefined()
  })

  it('may be done again, with another way to trust, which then is the only one', async () => {
    await host.connect(wish())
    const before = registered()
    host.said.length = 0
    await host.connect({ url, token: 'any', fingerprint })
    expect(host.said).toContainEqual(expect.stringContaining('the platform knows this host by its key'))
    expect(host.said).toContain(`renewed: ${host.places.dropIn}`)
    expect(registered()).toEqual(before)
    expect(readFileSync(host.places.dropIn, 'utf8')).not.toContain('caFile')
    expect(() => statSync(host.places.authorities)).toThrow()
  })

  it('warns of a clock that differs by more than a minute, and connects all the same', async () => {
    await host.connect(
      { url, fingerprint, token: makeToken().token },
      { now: () => Date.now() - 31 * 60_000 },
    )
    expect(host.said).toContainEqual(
      expect.stringMatching(
        /^warning: {2}clock: this clock is 3[01] min \d+ s behind that of the platform; .*NTP/,
      ),
    )
    const ahead = await createConnectingHost('press-ahead')
    await ahead.connect(wish(), { now: () => Date.now() + 62_500 })
    expect(ahead.said).toContainEqual(expect.stringMatching(/1 min \d s ahead of/))
    await ahead.stop()
  })

  it('is refused while there is a cluster, while the daemon does not answer, and at another platform', async () => {
    host.played.hasCluster = true
    expect(await refusal(host.connect(wish()))).toContain('sudo edgehostctl cluster delete --wait')
    host.played.hasCluster = false
    await host.connect(wish())
    const elsewhere = await refusal(host.connect(wish({ url: 'https://other.example' })))
    expect(elsewhere).toContain(`connected to ${url}; first: sudo edgehostctl platform disconnect`)
    await host.stopDaemon()
    expect(await refusal(host.connect(wish()))).toMatch(
      /the daemon is not running[^]*\nTo start: systemctl start/,
    )
  })

  it('names each file that would keep it from taking effect', async () => {
    host.writeDropIn('10-early.yaml', 'host: {mode: airgap}\nplatform:\n  proxy: http://proxy.example:3128\n')
    host.writeDropIn('90-late.yaml', '# ours\nhost:\n  mode: airgap\n')
    const message = await refusal(host.connect(wish()))
    expect(message).toMatch(
      /config\.d\/90-late\.yaml:3: sets host\.mode: airgap, which counts more than .*50-platform/,
    )
    expect(message).toMatch(/config\.d\/10-early\.yaml:3: sets platform\.proxy: http:\/\/proxy/)
    expect(message).not.toContain('10-early.yaml:1')
  })

  it('is refused while another one runs, which then ends as if it were alone', async () => {
    const token = makeToken().token
    const [first, second] = await Promise.allSettled([
      host.connect(wish({ token })),
      host.connect(wish({ token })),
    ])
    expect(first).toMatchObject({ status: 'fulfilled', value: { isConnected: true } })
    expect(second).toMatchObject({
      reason: { message: expect.stringMatching(/^another platform connect or disconnect runs/) as string },
    })
    expect(await host.connect(wish({ token: 'any' }))).toMatchObject({ isConnected: true })
  })

  it('does not follow a link at its places', async () => {
    const elsewhere = join(host.folder, 'elsewhere.yaml')
    writeFileSync(elsewhere, '')
    symlinkSync(elsewhere, host.places.dropIn)
    await expect(host.connect(wish())).rejects.toMatchObject({
      message: `${host.places.dropIn} is not a regular file; move it away, and connect again. Nothing was changed`,
      code: 'FileRefused',
    })
    expect([readFileSync(elsewhere, 'utf8'), existsSync(host.places.token)]).toEqual(['', false])
    expect(host.played.restarts).toBe(0)
  })

  it('has the daemon check the whole configuration before anything is in place', async () => {
    writeFileSync(
      host.configFile,
      `${readFileSync(host.configFile, 'utf8')}metrics:\n  tokenFile: /nowhere/token\n`,
    )
    expect(await refusal(host.connect(wish()))).toMatch(/config\.yaml:7: .*\/nowhere\/token/)
    expect(() => statSync(staged(host.places.token))).toThrow()
    expect(() => statSync(staged(host.places.authorities))).toThrow()
  })

  it('leaves no token and no authorities where the drop-in cannot be written, as on a full disk', async () => {
    // No file can be made there.
    const places = { ...host.places, dropIn: '/proc/self/50-platform.yaml' }
    const contents = { token: 'the-token', authorities: ca, dropIn: 'host: {mode: connected}' }
    await expect(stageFiles(places, contents)).rejects.toThrow(
      /^\/proc\/self\/50-platform.yaml cannot be written: .*Nothing was changed$/,
    )
    for (const file of [places.token, places.authorities])
      expect([existsSync(file), existsSync(staged(file))]).toEqual([false, false])
  })

  it('names the platform of another file also where that is no URL', async () => {
    host.writeDropIn('10-site.yaml', 'host: {mode: connected}\nplatform: {url: "https://box:99999"}\n')
    expect(await refusal(host.connect(wish()))).toContain('connected to https://box:99999')
  })

  it('names a token that is unknown or used up, and a host that is known with another key', async () => {
    expect(await refusal(host.connect(wish({ token: 'unknown' })))).toMatch(
      /refused the registration token: .*unknown, expired, switched off or used up.*Nothing was changed$/,
    )
    const { token } = makeToken(1)
    await playEdgeHost(platform).register(token)
    expect(await refusal(host.connect(wish({ token })))).toContain('used up')
    await playEdgeHost(platform, { hostUid: `press-${hosts}` }).register(makeToken().token)
    expect(await refusal(host.connect(wish()))).toMatch(
      /knows this host with another key.*delete the old record/,
    )
    expect(host.said.filter((line) => line.startsWith(' token'))).toEqual([])
  })

  it('says why a host is not connected after the restart', async () => {
    // Used up between the check and the registration.
    const { token } = makeToken(1)
    host.played.beforeRegistration = async () => {
      await playEdgeHost(platform).register(token)
    }
    await expect(host.connect(wish({ token }))).rejects.toThrow(
      /the settings are in place, but this host is not connected yet: .*used up; make a new one there\n.*sudo edgehostctl platform status/,
    )
    expect(await host.mode()).toBe('connected')
    host.played.beforeRegistration = async () => undefined
    expect(await host.connect(wish())).toMatchObject({ isConnected: true })
  })
})

describe('platform disconnect', () => {
  it('takes away what connect has written, and leaves the key, so that the platform knows the host again', async () => {
    await host.connect(wish())
    const before = registered()
    const asked: string[] = []
    await host.disconnect((what) => void asked.push(what))
    expect(asked).toEqual([`This host leaves the platform ${url}; edgehostd restarts.`])
    expect([host.present(), await host.mode(), host.played.mode]).toEqual([0, 'airgap', 'airgap'])
    expect(host.said.join('\n')).toContain('record on the platform stays until an administrator removes it')
    await host.connect(wish({ token: 'any' }))
    expect(registered()).toEqual(before)
  })

  it('needs no token to connect again; a host that the platform does not know is told that it needs one', async () => {
    expect(await refusal(host.connect(wish({ token: '' })))).toMatch(
      /does not know this host by its key, so it needs a registration token: give --token-file FILE/,
    )
    await host.connect(wish())
    await host.disconnect(() => undefined)
    const before = registered()
    expect(await host.connect(wish({ token: '' }))).toMatchObject({ isConnected: true })
    expect([registered(), existsSync(host.places.token)]).toEqual([before, false])
  })

  it('changes nothing without a yes', async () => {
    await host.connect(wish())
    const no = () => {
      throw new Error('no')
    }
    expect(await refusal(host.disconnect(no))).toBe('no')
  })

  it('may be done again, also where it was cut off before the restart', async () => {
    await host.connect(wish())
    await host.disconnect()
    const { restarts } = host.played
    await host.disconnect()
    expect([host.played.restarts, host.said.at(-1)]).toEqual([
      restarts,
      'This host is not connected; nothing was to be done.',
    ])
    host.played.mode = 'connected'
    await host.disconnect()
    expect(host.played.restarts).toBe(restarts + 1)
  })

  it('names the file and line of another one that connects the host, or that sets something of the platform', async () => {
    await host.connect(wish())
    host.writeDropIn('60-site.yaml', 'host:\n  mode: connected\n')
    expect(await refusal(host.disconnect())).toMatch(/60-site\.yaml:2: sets host\.mode: connected/)
    host.writeDropIn('60-site.yaml', 'platform:\n  url: https://other.example\n')
    await host.disconnect()
    expect(host.said.at(-1)).toMatch(/^warning: Without effect now.*60-site\.yaml:2 \(platform\.url\)/)
  })
})
