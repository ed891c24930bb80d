import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { eventually } from '../e2e/host/eventually.ts'
import { bootCloud, largerFlavor, services, type Cloud, type User } from './openstack/cloud.ts'
import { record } from './openstack/record.ts'
import { statesOf, statesOfServers } from '../support/cloud-states.ts'

let cloud: Cloud
let unplug = () => Promise.resolve()
beforeAll(async () => {
  cloud = await bootCloud()
  unplug = cloud.unplug
  // The first one waits for its packages.
}, 1_800_000)
afterAll(() => unplug())

interface Credential {
  readonly id: string
  readonly secret: string
}
interface Shown {
  readonly metadata: { readonly name: string; readonly uid: string }
  readonly spec: {
    readonly imageId: string
    readonly nics: readonly { readonly privateIPs: readonly string[] }[]
    readonly vpcId?: string
    readonly subnetId?: string
  }
  readonly status: {
    readonly instanceState: string
    readonly maintenanceStatus?: { readonly action: string }
    readonly health: { readonly conditions: readonly { readonly message: string; readonly type: string }[] }
  }
}

const credentialOf = (user: User, name: string): Promise<Credential> => cloud.credential(user, name)
const validate = ({ id, secret }: Credential) =>
  cloud.asRoot('POST', '/v1/clouds/vendor/account/validate', { secretId: id, secretKey: secret })
const codeOf = ({ status, text }: { readonly status: number; readonly text: string }) =>
  `${status} ${text === '' ? '' : (JSON.parse(text) as { code: string }).code}`.trim()

async function made(path: string, body: object): Promise<string> {
  const { status, text } = await cloud.asRoot('POST', path, body)
  expect(status, text).toBe(201)
  return (JSON.parse(text) as { uid: string }).uid
}

/** A cloud configuration with a pool for each tag. */
async function configure({ id, secret }: Credential, name: string, tags: readonly string[]): Promise<string> {
  const spec = { secretId: id, secretKey: secret }
  const account = await made('/v1/cloudaccounts/vendor', { metadata: { name }, spec })
  return made('/v1/cloudconfigs/vendorke', {
    metadata: { name },
    spec: {
      cloudAccountRef: { uid: account },
      machinePoolConfig: tags.map((tag) => ({ name: tag, tags: [tag] })),
    },
  })
}

const askMachines = (config: string, pool: string, query = '') =>
  cloud.asRoot('GET', `/v1/cloudconfigs/vendorke/${config}/machinePools/${pool}/machines${query}`)

/** All pages. */
async function machines(config: string, pool: string): Promise<readonly Shown[]> {
  const found: Shown[] = []
  for (let query = ''; ;) {
    const { status, text } = await askMachines(config, pool, query)
    expect(status, text).toBe(200)
    const { items, listmeta } = JSON.parse(text) as { items: Shown[]; listmeta: { continue: string } }
    found.push(...items)
    if (listmeta.continue === '') return found
    query = `?continue=${encodeURIComponent(listmeta.continue)}`
  }
}

/** A request of the platform, as the recordings have them. */
async function askKeystone({ id, secret }: Credential) {
  const body = {
    auth: { identity: { methods: ['application_credential'], application_credential: { id, secret } } },
  }
  return cloud.send('POST', `${services.identity}/auth/tokens`, {}, body)
}
async function askNova(credential: Credential, query: string, version = '2.47') {
  const token = (await askKeystone(credential)).headers['x-subject-token']?.[0] ?? ''
  return cloud.send('GET', `${services.compute}/servers/detail?${query}`, {
    'X-Auth-Token': token,
    'X-OpenStack-Nova-API-Version': version,
  })
}

let owner: Credential

describe('a platform with an OpenStack', () => {
  it('has no cloud before its configuration names one', async () => {
    expect(codeOf(await validate({ id: 'a', secret: 'b' }))).toBe('400 CloudNotConfigured')
    await cloud.sh('install -m 644 /etc/openstack/certificate.pem /etc/edgeplatform/cloud-ca.pem')
    await cloud.write(
      '/etc/edgeplatform/config.d/20-cloud.yaml',
      `clouds: {vendor: {authUrl: '${services.identity}', caFile: /etc/edgeplatform/cloud-ca.pem}}\n`,
    )
    await cloud.sh('edgeplatformd --check-config; systemctl restart edgeplatformd')
  })

  it('accepts credentials that the cloud accepts, and no others', async () => {
    owner = await credentialOf('owner', 'platform')
    const reader = await credentialOf('reader', 'platform')
    const gone = await credentialOf('owner', 'gone')
    expect(codeOf(await validate(owner))).toBe('204')
    expect(codeOf(await validate(reader))).toBe('204')
    expect(codeOf(await validate(gone))).toBe('204')
    const { user } = (await askKeystone(gone)).json.token as { user: { id: string } }
    await cloud.api('owner', 'identity', 'DELETE', `users/${user.id}/application_credentials/${gone.id}`)
    const wrong = { ...owner, secret: 'wrong' }
    const unknown = { ...owner, id: '0'.repeat(32) }
    for (const refused of [wrong, unknown, gone])
      expect(codeOf(await validate(refused))).toBe('400 CloudCredentialsRefused')

    const granted = await askKeystone(owner)
    await record('keystone-token', granted, granted.headers['x-subject-token'])
    for (const [name, credential] of Object.entries({ wrong, unknown, deleted: gone }))
      await record(`keystone-${name}`, await askKeystone(credential))
  })

  it('gives up after five seconds where the cloud does not answer', async () => {
    const begun = performance.now()
    expect(codeOf(await cloud.frozen(['nginx'], () => validate(owner)))).toBe('503 CloudUnavailable')
    expect(performance.now() - begun).toBeLessThan(8_000)
    expect(codeOf(await validate(owner))).toBe('204')
  })
})

describe('the pools of an OpenStack', () => {
  it('have all their servers, 50 a page of Nova', async () => {
    await cloud.make({ name: 'one', tags: ['one'], metadata: { line: '4' }, network: cloud.networks.served })
    await cloud.make({ name: 'sixty', tags: ['sixty', 'many'], count: 60 })
    await cloud.make({ name: 'more', tags: ['more', 'many'], count: 60 })
    await cloud.allBuilt()
    expect(await cloud.servers('tags=many')).toHaveLength(50)
    const config = await configure(owner, 'sizes', ['none', 'one', 'sixty', 'many'])
    const sizes = [0, 1, 60, 120]
    for (const [index, pool] of ['none', 'one', 'sixty', 'many'].entries()) {
      const found = await machines(config, pool)
      expect([pool, found.length, new Set(found.map(({ metadata }) => metadata.uid)).size]).toEqual([
        ...[pool, sizes[index], sizes[index]],
      ])
    }
    const [one] = await machines(config, 'one')
    expect(one).toMatchObject({
      metadata: { name: 'one', annotations: { line: '4' } },
      spec: {
        ...{ imageId: cloud.image, instanceType: 'small', vpcId: cloud.networks.served, zoneId: 'nova' },
        nics: [{ index: 0, privateIPs: [expect.stringMatching(/^10\.1\./)] }],
        securityGroups: ['default'],
      },
      status: { instanceState: 'Running' },
    })
    expect(one?.spec.subnetId).toMatch(/^[0-9a-f-]{36}$/)

    await record('nova-empty', await askNova(owner, 'tags=none&limit=200'))
    const page = await askNova(owner, 'tags=sixty&limit=2')
    await record('nova-page', page)
    const last = await askNova(owner, 'tags=one&limit=2')
    await record('nova-last-page', last)
    await record(
      'nova-lost-marker',
      await askNova(owner, `tags=sixty&limit=2&marker=${'0'.repeat(8)}-0000-4000-8000-${'0'.repeat(12)}`),
    )
    await record('nova-unknown-version', await askNova(owner, 'limit=2', '2.999'))
    await record(
      'nova-refused-token',
      await cloud.send('GET', `${services.compute}/servers/detail`, { 'X-Auth-Token': 'none' }),
    )
    const token = (await askKeystone(owner)).headers['x-subject-token']?.[0] ?? ''
    const fields = ['id', 'device_id', 'mac_address', 'network_id', 'fixed_ips'].map(
      (each) => `fields=${each}`,
    )
    const ports = await cloud.send('GET', `${services.network}/ports?limit=2000&${fields.join('&')}`, {
      'X-Auth-Token': token,
    })
    await record('neutron-ports', ports)
  }, 900_000)

  it('are seen by a reader too', async () => {
    const config = await configure(await credentialOf('reader', 'pools'), 'of the reader', ['one'])
    expect(await machines(config, 'one')).toHaveLength(1)
  })

  it('show each state that Nova can be brought into', async () => {
    const names = [
      ...['running', 'off', 'paused', 'suspended', 'shelved', 'offloaded', 'verify', 'revert', 'rescue'],
      ...['reboot', 'hard-reboot', 'resize', 'migrating', 'password', 'rebuild', 'deleting', 'soft-deleting'],
      'soft-deleted',
    ]
    const ids = new Map<string, string>()
    for (const name of names) ids.set(name, await cloud.make({ name, tags: ['states'] }))
    const failed = await cloud.make({ name: 'failed', tags: ['states'], network: cloud.networks.unserved })
    const id = (name: string) => ids.get(name) ?? ''
    await cloud.allBuilt()
    for (const name of names) await cloud.until(id(name), 'ACTIVE')
    await cloud.until(failed, 'ERROR')

    const size = { resize: { flavorRef: largerFlavor } }
    await cloud.act(id('off'), { 'os-stop': null })
    await cloud.act(id('paused'), { pause: null })
    await cloud.act(id('suspended'), { suspend: null })
    await cloud.act(id('shelved'), { shelve: null })
    await cloud.act(id('offloaded'), { shelve: null })
    await cloud.act(id('verify'), size)
    await cloud.act(id('revert'), size)
    await cloud.act(id('rescue'), { rescue: {} })
    await cloud.api('owner', 'compute', 'DELETE', `servers/${id('soft-deleted')}`)
    await cloud.until(id('off'), 'SHUTOFF')
    await cloud.until(id('paused'), 'PAUSED')
    await cloud.until(id('suspended'), 'SUSPENDED')
    await cloud.until(id('shelved'), 'SHELVED')
    await cloud.until(id('offloaded'), 'SHELVED')
    await cloud.act(id('offloaded'), { shelveOffload: null }, 'admin')
    await cloud.until(id('offloaded'), 'SHELVED_OFFLOADED')
    await cloud.until(id('verify'), 'VERIFY_RESIZE')
    await cloud.until(id('revert'), 'VERIFY_RESIZE')
    await cloud.until(id('rescue'), 'RESCUE')

    // What passes in a moment stays as it is while the parts of Nova that would do it stand still.
    const building = await cloud.make({ name: 'building', tags: ['states'], network: cloud.networks.served })
    await cloud.freeze('neutron-api')
    await eventually(async () => {
      // Nova itself would ask Neutron.
      const query = `SELECT task_state FROM instances WHERE uuid = '${building}'`
      const task = (await cloud.output(['mysql', '-N', 'nova', '-e', query])).trim()
      if (!['networking', 'spawning', 'block_device_mapping'].includes(task)) throw new Error(task)
    })
    const config = await configure(owner, 'states', ['states'])
    const found = await cloud.frozen(['nova-compute', 'nova-conductor'], async () => {
      await cloud.thaw('neutron-api')
      await cloud.act(id('revert'), { revertResize: null })
      await cloud.act(id('reboot'), { reboot: { type: 'SOFT' } })
      await cloud.act(id('hard-reboot'), { reboot: { type: 'HARD' } })
      await cloud.act(id('resize'), size)
      const target = { host: null, block_migration: 'auto' }
      await cloud.act(id('migrating'), { 'os-migrateLive': target }, 'admin')
      await cloud.act(id('rebuild'), { rebuild: { imageRef: cloud.image } })
      await cloud.act(id('deleting'), { forceDelete: null })
      await cloud.api('owner', 'compute', 'DELETE', `servers/${id('soft-deleting')}`)
      await cloud.make({ name: 'waiting', tags: ['states'] })
      // Nova waits for this one.
      void cloud.act(id('password'), { changePassword: { adminPass: 'another' } }).catch(() => undefined)
      await cloud.until(id('password'), 'PASSWORD')
      await record('nova-states', await askNova(owner, 'tags=states&limit=50'))
      return machines(config, 'states')
    })
    expect(statesOf(found)).toEqual(statesOfServers)
    const broken = found.find(({ metadata }) => metadata.name === 'failed')
    expect(broken?.status.health.conditions).toEqual([
      expect.objectContaining({ type: 'Failed', message: expect.stringMatching(/./) as string }),
    ])

    // Nova shows these to an administrator of the cloud alone; what is deleted has no tags any more.
    const admin = await askKeystone(await credentialOf('admin', 'deleted'))
    const gone = await eventually(async () => {
      const reply = await cloud.send('GET', `${services.compute}/servers/detail?deleted=True&limit=50`, {
        ...{
          'X-Auth-Token': admin.headers['x-subject-token']?.[0] ?? '',
          'X-OpenStack-Nova-API-Version': '2.47',
        },
      })
      const { servers } = reply.json as { servers: { status: string }[] }
      const statuses = new Set(servers.map(({ status }) => status))
      expect(statuses).toEqual(new Set(['DELETED', 'SOFT_DELETED']))
      return reply
    }, 120_000)
    await record('nova-deleted', gone, [(await cloud.output(['hostname'])).trim()])
  }, 900_000)

  it('stay as they were while the cloud does not answer, and say so', async () => {
    const config = await configure(owner, 'slow', ['one'])
    expect(await machines(config, 'one')).toHaveLength(1)
    await cloud.frozen(['nginx'], () =>
      eventually(async () => {
        const [one] = await machines(config, 'one')
        expect(one?.status.health.conditions.map(({ type }) => type)).toEqual(['Outdated'])
      }, 60_000),
    )
    await eventually(async () => {
      const [one] = await machines(config, 'one')
      expect(one?.status.health.conditions).toEqual([])
    }, 60_000)
  })

  it('are refused when their credentials were deleted in the cloud', async () => {
    const doomed = await credentialOf('owner', 'doomed')
    const config = await configure(doomed, 'doomed', ['one'])
    expect(await machines(config, 'one')).toHaveLength(1)
    const { user } = (await askKeystone(doomed)).json.token as { user: { id: string } }
    await cloud.api('owner', 'identity', 'DELETE', `users/${user.id}/application_credentials/${doomed.id}`)
    await eventually(async () => {
      expect(codeOf(await askMachines(config, 'one'))).toBe('400 CloudCredentialsRefused')
    }, 60_000)
  })

  it('leave no secret in the journal and in the state folder', async () => {
    const journal = await cloud.output(['journalctl', '--no-pager', '-o', 'cat', '-u', 'edgeplatformd'])
    expect(journal).not.toContain(owner.secret)
    const { stdout } = await cloud.run([
      'grep',
      '-rlaF',
      owner.secret,
      '/var/lib/edgeplatform',
      '/run/edgeplatform',
    ])
    expect(stdout).toBe('')
  })
})
