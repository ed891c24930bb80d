import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { bootEdgeplatform, type Edgeplatform } from '../../e2e/host/edgeplatform.ts'
import { curl, type Reply } from '../../e2e/host/http.ts'

/** Who asks OpenStack: its administrator, or a user of the project `plant`, with the role `member` or `reader`. */
export type User = 'admin' | 'owner' | 'reader'

/** Where its services are, as their users see them; nginx speaks TLS for them. */
export const services = {
  identity: 'https://127.0.0.1:5443/v3',
  compute: 'https://127.0.0.1:8443/v2.1',
  network: 'https://127.0.0.1:9443/v2.0',
} as const

/** A server to be made. */
export interface Order {
  readonly name: string
  readonly tags: readonly string[]
  /** Uid of a network; without one the server has no network. */
  readonly network?: string
  readonly metadata?: Readonly<Record<string, string>>
  /** How many of them. */
  readonly count?: number
}

/** A server as Nova tells of it. */
export interface Server {
  readonly id: string
  readonly name: string
  readonly status: string
  readonly 'OS-EXT-STS:task_state': string | null
}

/** A booted host with a whole OpenStack, in whose project `plant` servers start nothing, and the platform beside it. */
export interface Cloud extends Edgeplatform {
  /** A request that has to succeed. */
  // eslint-disable-next-line @typescript-eslint/no-explicit-any -- replies of every shape
  api(user: User, service: keyof typeof services, method: string, path: string, body?: object): Promise<any>
  /** A request to any address of the cloud. */
  send(method: string, url: string, headers?: Readonly<Record<string, string>>, body?: object): Promise<Reply>
  /** A new application credential of a user. */
  credential(user: User, name: string): Promise<{ id: string; secret: string }>
  /** Uid of the image of all servers. */
  readonly image: string
  /** Networks: one whose ports an agent serves, and one that none does. */
  readonly networks: { readonly served: string; readonly unserved: string }
  /** Orders a server. @returns its id; of several the first one's */
  make(order: Order): Promise<string>
  act(id: string, action: object, user?: User): Promise<void>
  servers(query: string): Promise<readonly Server[]>
  /** Waits until no server is being built; each takes a second. */
  allBuilt(): Promise<void>
  /** Waits until Nova says this of a server. */
  until(id: string, status: string): Promise<void>
  /** Stops a unit as it is: what waits for it stays as it is. */
  freeze(unit: string): Promise<void>
  /** Lets it continue. */
  thaw(unit: string): Promise<void>
  /** Does work while units stand still. */
  frozen<T>(units: readonly string[], work: () => Promise<T>): Promise<T>
}

// The first one in which a new server may have tags.
const compute = { 'X-OpenStack-Nova-API-Version': '2.52' }
const flavor = 'small'
/** For servers that are given another size. */
export const largerFlavor = 'large'

/** Boots it and sets it up, which takes a minute. */
export async function bootCloud(): Promise<Cloud> {
  const host = await bootEdgeplatform({ lower: 'openstack' })
  try {
    await host.write('/root/set-up.sh', await readFile(join(import.meta.dirname, 'set-up.sh')))
    await host.output(['bash', '/root/set-up.sh', '127.0.0.1'], { timeoutMs: 600_000 })
    return await furnish(host)
  } catch (error) {
    await host.unplug()
    throw error
  }
}

async function furnish(host: Edgeplatform): Promise<Cloud> {
  const cacert = `/proc/${host.leader}/root/etc/openstack/certificate.pem`
  const password = await host.read('/etc/openstack/password')
  const send: Cloud['send'] = (method, url, headers = {}, body) =>
    curl(host.leader, method, url, { cacert, headers, ...(body === undefined ? {} : { body }) })

  const logIns = new Map<User, Promise<{ token: string; userId: string }>>()
  function logIn(user: User) {
    const known = logIns.get(user) ?? newLogIn(user)
    logIns.set(user, known)
    return known
  }
  async function newLogIn(name: User) {
    const domain = { id: 'default' }
    const reply = await send(
      'POST',
      `${services.identity}/auth/tokens`,
      {},
      {
        auth: {
          identity: { methods: ['password'], password: { user: { name, domain, password } } },
          scope: { project: { name: 'plant', domain } },
        },
      },
    )
    const token = reply.headers['x-subject-token']?.[0] ?? ''
    const { user } = (reply.json as { token: { user: { id: string } } }).token
    return { token, userId: user.id }
  }
  const api: Cloud['api'] = async (user, service, method, path, body) => {
    const { token } = await logIn(user)
    const headers = { 'X-Auth-Token': token, ...(service === 'compute' ? compute : {}) }
    const reply = await send(method, `${services[service]}/${path}`, headers, body)
    if (reply.status < 200 || reply.status > 299)
      throw new Error(`${method} ${path}: ${reply.status} ${reply.failure}${reply.text}`)
    return reply.json as unknown
  }

  // The units are notified of their start before they have told Nova of it.
  for (;;) {
    const { services: known } = await api('admin', 'compute', 'GET', 'os-services')
    if ((known as { state: string }[]).filter(({ state }) => state === 'up').length === 3) break
    await sleep(500)
  }
  // Without it the scheduler finds no cell for what it has chosen.
  await host.output([
    'setpriv',
    '--reuid=nova',
    '--regid=nova',
    '--init-groups',
    'nova-manage',
    'cell_v2',
    'discover_hosts',
  ])
  for (const [name, ram] of [
    [flavor, 64],
    [largerFlavor, 128],
  ] as const)
    await api('admin', 'compute', 'POST', 'flavors', { flavor: { name, id: name, ram, vcpus: 1, disk: 1 } })
  const { token } = await logIn('admin')
  const image = (
    await host.sh(
      `head -c 1048576 /dev/zero > /root/image
      uid=$(curl -sf http://controller:9292/v2/images -H "X-Auth-Token: $1" -H 'Content-Type: application/json' \\
        -d '{"name": "small", "disk_format": "raw", "container_format": "bare", "visibility": "public"}' | grep -o '"id": *"[^"]*"' | cut -d'"' -f4)
      curl -sf -X PUT "http://controller:9292/v2/images/$uid/file" -H "X-Auth-Token: $1" \\
        -H 'Content-Type: application/octet-stream' --data-binary @/root/image
      echo "$uid"`,
      token,
    )
  ).trim()
  async function network(name: string, cidr: string): Promise<string> {
    const { network: made } = await api('admin', 'network', 'POST', 'networks', {
      network: {
        ...{ name, shared: true },
        ...{ 'provider:network_type': 'flat', 'provider:physical_network': name },
      },
    })
    const subnet = { network_id: made.id, ip_version: 4, cidr, enable_dhcp: false }
    await api('admin', 'network', 'POST', 'subnets', { subnet })
    return made.id as string
  }
  const networks = {
    // The name that the agent of set-up.sh serves.
    served: await network('plant', '10.1.0.0/16'),
    unserved: await network('nowhere', '10.2.0.0/16'),
  }

  const signal = async (name: string, units: readonly string[]) => {
    await host.output(['systemctl', 'kill', `--signal=${name}`, ...units])
  }
  return {
    ...host,
    get leader() {
      return host.leader
    },
    ...{ api, send, networks, image },
    async credential(user, name) {
      const { userId } = await logIn(user)
      const path = `users/${userId}/application_credentials`
      const made = await api(user, 'identity', 'POST', path, { application_credential: { name } })
      return made.application_credential as { id: string; secret: string }
    },
    async make({ name, tags, network: uid, metadata = {}, count = 1 }) {
      const { server } = await api('owner', 'compute', 'POST', 'servers', {
        server: {
          ...{ name, tags, metadata, flavorRef: flavor, imageRef: image, min_count: count },
          networks: uid === undefined ? 'none' : [{ uuid: uid }],
        },
      })
      return server.id as string
    },
    async act(id, action, user = 'owner') {
      await api(user, 'compute', 'POST', `servers/${id}/action`, action)
    },
    async servers(query) {
      const { servers } = await api('owner', 'compute', 'GET', `servers/detail?${query}`)
      return servers as Server[]
    },
    async allBuilt() {
      const end = performance.now() + 600_000
      for (;;) {
        const { servers } = await api('owner', 'compute', 'GET', 'servers/detail?status=BUILD')
        const left = (servers as Server[]).map(
          ({ name, 'OS-EXT-STS:task_state': task }) => `${name} (${task ?? 'no task'})`,
        )
        if (left.length === 0) return
        if (performance.now() > end)
          throw new Error(`still being built after ten minutes: ${left.join(', ')}`)
        await sleep(1_000)
      }
    },
    async until(id, status) {
      let seen = ''
      const end = performance.now() + 60_000
      while (performance.now() < end) {
        const { server } = await api('owner', 'compute', 'GET', `servers/${id}`)
        seen = String(server.status)
        if (seen === status) return
        await sleep(200)
      }
      throw new Error(`the server ${id} is ${seen}, not ${status}`)
    },
    freeze: (unit) => signal('SIGSTOP', [unit]),
    thaw: (unit) => signal('SIGCONT', [unit]),
    async frozen(units, work) {
      await signal('SIGSTOP', units)
      try {
        return await work()
      } finally {
        await signal('SIGCONT', units)
      }
    },
  }
}
