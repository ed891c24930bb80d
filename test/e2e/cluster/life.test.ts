import { zstdDecompressSync } from 'node:zlib'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { createContentCtl } from '../../support/content-ctl.ts'
import { isKitMissing } from '../../support/kubernetes-kit.ts'
import { eventually } from '../host/eventually.ts'
import { clusterWire } from '../host/ground.ts'
import { run, systemPath } from '../host/process.ts'
import type { ClusterDryRun } from '../../../src/cluster/schemas.ts'
import { bootForTests } from './boot-for-tests.ts'
import { clusterPath } from './cluster-client.ts'
import { password } from './cluster-host.ts'
import { clusterWrites } from './cluster-writes.ts'
import { changesBetween, readHostState } from './host-state.ts'
import { sensitiveValue } from './plant-definition.ts'
import { askWorkload } from './workload.ts'

const plant = bootForTests({ prepare: (host) => host.addUser({ name: 'guest', password }) })
const attentionPath = '/v1/edge-mgmt/edgehosts/current/attention'
let uid: string

/** What the document of this host says of its part in a cluster. */
async function hostInCluster() {
  const { json } = await plant.cluster.get('/v1/edge-mgmt/edgehosts/current')
  const find = (name: string) =>
    new RegExp(`"${name}":("?)(.*?)\\1[,}]`).exec(JSON.stringify(json))?.[2] ?? 'missing'
  return [find('configurationStatus'), find('nodeRole'), find('isClusterPhase')].join(' ')
}

interface Lifecycle {
  readonly clusterEvents: readonly { readonly type: string }[]
  readonly edgeHostEvents: readonly { readonly type: string }[]
  readonly expectedOrder: readonly { readonly conditionsOrder: readonly { readonly type: string }[] }[]
}

describe.skipIf(isKitMissing())('the life of a cluster on one host', () => {
  it('a host without a cluster says so, and a dry run reports the plan and changes nothing', async () => {
    for (const path of ['', '/details', '/applications']) {
      expect((await plant.cluster.get(`${clusterPath}${path}`)).status, path).toBe(404)
    }
    const reply = await plant.cluster.post({}, { query: '?dryRun=true' })
    expect(reply, reply.text).toMatchObject({ status: 200, json: { isPossible: true } })
    const { problems, plan } = reply.json as ClusterDryRun
    expect(problems.filter(({ severity }) => severity === 'error')).toEqual([])
    expect(plan.length).toBeGreaterThan(5)
    expect(await plant.cluster.details()).toBeUndefined()
    expect(await hostInCluster()).toBe('pending unknown false')
    expect(changesBetween(plant.before, await readHostState(plant.host))).toEqual([])
  })

  it('a cluster is accepted once, comes up by the phases in order, and runs', async () => {
    await plant.host.write('/root/definition.tgz', await readFile(join(plant.host.folder, 'definition.tgz')))
    await plant.host.write('/root/token', `${sensitiveValue}\n`, 0o600)
    const typed = ['edgehostctl', 'cluster', 'create', '--name=plant', '--definition=/root/definition.tgz']
    const greeting = ['--set', 'greeting=good morning']
    const refused = await plant.host.run([...typed, ...greeting, '--set', 'token=typed'])
    expect(refused).toMatchObject({ exitCode: 2, stdout: '' })
    expect(refused.stderr).toContain('--set-file token=FILE')
    const made = await plant.host.output([
      ...typed,
      ...greeting,
      '--set-file',
      'token=/root/token',
      '-o',
      'json',
    ])
    uid = (JSON.parse(made) as { uid: string }).uid
    await plant.host.output(['rm', '/root/token'])
    // The same body, whoever sends it.
    const key = { headers: { 'Idempotency-Key': 'first-0907' } }
    const second = await plant.cluster.post({}, key)
    expect(second, second.text).toMatchObject({ status: 201, json: { uid } })
    expect(await plant.cluster.post({}, key)).toMatchObject({ status: 201, json: { uid } })
    expect(await plant.cluster.post()).toMatchObject({ status: 201, json: { uid } })
    const other = await plant.cluster.post({ name: 'other' })
    expect(other).toMatchObject({ status: 409, json: { code: 'ClusterExists', details: { uid } } })

    const phases: string[] = []
    const parts: string[] = []
    await plant.cluster.reach('Running', {
      onLook: async ({ status: { phase, clusterState } }) => {
        if (phases.at(-1) !== phase) phases.push(phase)
        const part = await hostInCluster()
        if (parts.at(-1) !== part) parts.push(part)
        expect(clusterState).toBe(phase === 'Running' ? 'Running' : 'Provisioning')
      },
    })
    const order = ['Pending', 'Provisioning', 'Provisioned', 'Running']
    expect(phases).toEqual(order.filter((phase) => phases.includes(phase)))
    expect(phases).toContain('Provisioning')
    expect(parts).toContain('inprogress init true')
    // The document of the host follows in a moment.
    await eventually(async () => expect(await hostInCluster()).toBe('configured controlplane true'))
  })

  it('the workload answers, with the values of the variables', async () => {
    expect(await eventually(() => askWorkload(plant))).toBe('good morning')
    const secret = await plant.cluster.kubectl(
      '-n',
      'shop',
      'get',
      'secret',
      'web',
      '-o',
      'jsonpath={.data.token}',
    )
    expect(Buffer.from(secret, 'base64').toString()).toBe(sensitiveValue)
    const data = await plant.cluster.kubectl(
      '-n',
      'greeting',
      'get',
      'configmap',
      'hello',
      '-o',
      'jsonpath={.data}',
    )
    expect(JSON.parse(data)).toEqual({ minor: '1.34', cluster: 'plant', text: 'good morning' })
    const labels = await plant.cluster.kubectl(
      'get',
      'namespace',
      'greeting',
      '-o',
      'jsonpath={.metadata.labels}',
    )
    expect(JSON.parse(labels)).toMatchObject({ tier: 'front', made: 'here' })
    const releases = await plant.host.sh(
      'KUBECONFIG=/etc/kubernetes/admin.conf /var/lib/edgehostd/cluster/programs/helm/current/helm list -A -o json',
    )
    expect(JSON.parse(releases)).toMatchObject([{ namespace: 'shop', status: 'deployed' }])
  })

  it('what was posted is given back with the sensitive value masked, and that value is in no reply, log or audit record', async () => {
    const { json } = await plant.cluster.get(clusterPath)
    expect(json.metadata).toMatchObject({ name: 'plant' })
    const values = json.spec.profileVariables as { name: string; value: string }[]
    expect(values.find(({ name }) => name === 'greeting')?.value).toBe('good morning')
    expect(values.find(({ name }) => name === 'token')?.value).toMatch(/^\*+$/)
    const paths = [
      ...['', '/details', '/applications', '/events'].map((path) => `${clusterPath}${path}`),
      '/v1/edge-mgmt/events/lifecycle',
      '/v1/edge-mgmt/edgehosts/current/error-logs?logCount=1000',
      '/v1/edge-mgmt/clusters/archive/overridden/details',
    ]
    for (const path of paths) {
      const reply = await plant.cluster.get(path)
      expect(reply, path).toMatchObject({ status: 200 })
      expect(reply.text, path).not.toContain(sensitiveValue)
    }
    expect(await plant.host.output(['journalctl', '--no-pager', '--output=cat'])).not.toContain(
      sensitiveValue,
    )
    const state = '/var/lib/edgehostd'
    const plain = await plant.host.sh(
      `grep -rlF "$1" ${state} --exclude-dir=containerd --exclude-dir=content --exclude-dir=etcd || true`,
      sensitiveValue,
    )
    // Prepared values of the packs, which only root may read.
    for (const file of plain.split('\n').filter(Boolean)) {
      expect(file).toMatch(new RegExp(`^${state}/cluster/${uid}/`))
      expect((await plant.host.output(['stat', '-c', '%a %U', file])).trim()).toBe('600 root')
    }
  })

  it('details, nodes, pools, applications and events agree with Kubernetes', async () => {
    const details = (await plant.cluster.details())!
    expect(details.status).toMatchObject({
      ...{ clusterState: 'Running', phase: 'Running', health: { status: 'Healthy' }, k8sVersion: '1.34.4' },
    })
    expect(details.status.steps.map(({ state }) => state)).not.toContain('failed')
    expect((await plant.cluster.get(attentionPath)).json).toEqual({ items: [] })
    const name = (
      await plant.cluster.kubectl('get', 'node', '-o', 'jsonpath={.items[0].metadata.name}')
    ).trim()
    const nodes = await plant.cluster.get('/v1/edge-mgmt/clusters/current/nodes')
    expect(nodes.json.nodes).toMatchObject([
      { nodeName: name, ipv4: '10.77.0.1', kubeletVersion: 'v1.34.4', architecture: 'amd64' },
    ])
    expect(nodes.json.nodes[0].nodeStatus).toMatchObject({ conditionType: 'Ready', status: 'True' })
    const pools = await plant.cluster.get('/v1/edge-mgmt/clusters/current/machinepools')
    expect(pools.json.items).toMatchObject([{ name: 'control', isControlPlane: true, size: 1 }])

    const { json } = await plant.cluster.get(`${clusterPath}/applications`)
    const profiles = json.clusterProfileTemplates as { packs: { name: string }[] }[]
    const packs = profiles.flatMap((each) => each.packs).map(({ name: pack }) => pack)
    expect(packs).toEqual(expect.arrayContaining(['cni-plain', 'greeting', 'web']))

    const reasons = (await plant.cluster.ownEvents()).map(({ reason }) => reason)
    expect(reasons).toEqual(
      expect.arrayContaining(['Accepted', 'ControlPlaneStarted', 'NodeReady', 'Running']),
    )
    expect((await plant.cluster.events('shop')).map(({ reason }) => reason)).toContain('Started')
    const lifecycle = (await plant.cluster.get('/v1/edge-mgmt/events/lifecycle')).json as Lifecycle
    const happened = new Set(
      [...lifecycle.clusterEvents, ...lifecycle.edgeHostEvents].map(({ type }) => type),
    )
    const expected = lifecycle.expectedOrder.flatMap(({ conditionsOrder }) => conditionsOrder)
    expect(expected.length).toBeGreaterThan(10)
    expect(expected.filter(({ type }) => !happened.has(type))).toEqual([])
  })

  it('the event stream gives the stored events, and those after the last that a client has', async () => {
    const idsOf = async (headers: Record<string, string> = {}) => {
      // It does not end by itself.
      const { text } = await plant.cluster.get('/v1/edge-mgmt/events/stream', { headers, timeoutMs: 3_000 })
      return [...text.matchAll(/^id: ?(\d+)$/gm)].map(([, id]) => Number(id))
    }
    const all = await idsOf()
    expect(all.length).toBeGreaterThan(10)
    expect(await idsOf({ 'Last-Event-ID': String(all.at(-4)) })).toEqual(all.slice(-3))

    await plant.host.sh('systemctl restart edgehostd')
    const after = await idsOf({ 'Last-Event-ID': String(all.at(-4)) })
    expect(after.slice(0, 3)).toEqual(all.slice(-3))
    expect(after.length).toBeGreaterThan(3)
  })

  it('edgehostctl shows the cluster and its kubeconfig, and says what hinders a second one', async () => {
    const ctl = (...args: string[]) => plant.host.run(['edgehostctl', 'cluster', ...args])
    expect((await ctl('get')).stdout).toMatch(/plant[^]*Running/)
    expect((await ctl('get', '-o', 'json')).stdout).not.toContain('client-key-data')
    expect((await ctl('kubeconfig')).stdout).toContain('client-key-data')
    expect((await ctl('events', '--limit', '0')).stdout).toContain('ControlPlaneStarted')
    const nodes = await ctl('kubectl', '--', 'get', 'nodes', '-o', 'wide')
    expect(nodes).toMatchObject({ exitCode: 0, stderr: '' })
    expect(nodes.stdout).toMatch(/ Ready +control-plane .* v1\.34\.4 +10\.77\.0\.1 /)
    const absent = await ctl('kubectl', '--', 'get', 'pod', 'absent')
    expect(absent).toMatchObject({ exitCode: 1, stdout: '' })
    expect(absent.stderr).toContain('NotFound')
    await plant.host.write(
      '/root/second.json',
      JSON.stringify(plant.configuration({ name: 'second' })),
      0o600,
    )
    const second = await ctl('create', '/root/second.json')
    expect(second.exitCode).not.toBe(0)
    expect(second.stderr).toContain('this host has the cluster plant')
    await plant.host.output(['rm', '/root/second.json'])
  })

  it('edgehostctl on another machine runs the kubectl of that machine, for administrators', async () => {
    const { program, home, remove } = createContentCtl()
    try {
      const env = { HOME: home, TMPDIR: home, PATH: `${plant.kit.programs}:${systemPath}` }
      const ctl = (args: readonly string[], input = '') =>
        run(
          'nsenter',
          [
            ...['-t', String(plant.host.clientNamespace()), '-n', 'setsid', '--wait'],
            ...[process.execPath, program, '--host', clusterWire.host.ipv4, ...args],
          ],
          { env, input },
        )
      const status = JSON.parse(await plant.host.output(['edgehostctl', '-o', 'json', 'status'])) as {
        service: { certificate: { fingerprint: string } }
      }
      const logIn = async (user: string) => {
        const known = ['--fingerprint', status.service.certificate.fingerprint]
        const ended = await ctl([...known, 'login', user, '--password-stdin'], `${password}\n`)
        expect(ended.exitCode, ended.stderr).toBe(0)
      }
      const kubectl = (args: readonly string[], input?: string) =>
        ctl(['cluster', 'kubectl', '--', ...args], input)

      await logIn('chief')
      const note = 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: note}\ndata: {text: from afar}\n'
      expect(await kubectl(['apply', '-f', '-'], note)).toMatchObject({
        ...{ exitCode: 0, stdout: 'configmap/note created\n', stderr: '' },
      })
      const text = ['get', 'configmap', 'note', '-o', 'jsonpath={.data.text}']
      expect(await kubectl(text)).toMatchObject({ exitCode: 0, stdout: 'from afar' })
      expect(await kubectl(['delete', 'configmap', 'note'])).toMatchObject({ exitCode: 0 })
      expect(await kubectl(text)).toMatchObject({ exitCode: 1, stdout: '' })
      expect((await readdir(home)).filter((name) => name.startsWith('edgehostctl-'))).toEqual([])

      await logIn('guest')
      const refused = await kubectl(text)
      expect(refused).toMatchObject({ exitCode: 1, stdout: '' })
      expect(refused.stderr).toContain('for administrators of the host, and guest is not one')
    } finally {
      remove()
    }
  })

  it('only administrators get the kubeconfig, and its first delivery in a session is audited', async () => {
    const { token: guest } = await plant.host.openSession('guest', password)
    const reply = await plant.host.http('GET', `${clusterPath}/details`, { token: guest })
    expect(reply.json.status).not.toHaveProperty('kubeconfig')
    const { token } = await plant.host.openSession('chief', password)
    for (const delivery of ['first', 'second']) {
      const { json } = await plant.host.http('GET', `${clusterPath}/details`, { token })
      expect(json.status.kubeconfig, delivery).toContain('client-key-data')
    }
    const kubeconfig = (await plant.cluster.details())!.status.kubeconfig!
    await plant.host.write('/root/taken.conf', kubeconfig, 0o600)
    const kubectl = '/var/lib/edgehostd/cluster/programs/kubectl/current/kubectl'
    expect(
      await plant.host.output([kubectl, '--kubeconfig=/root/taken.conf', 'get', '--raw', '/readyz']),
    ).toBe('ok')
    await plant.host.output(['rm', '/root/taken.conf'])

    const audits = async () => {
      const filters = encodeURIComponent('spec.resource.kind=kubeconfig')
      const found = await plant.cluster.get(`/v1/edge-mgmt/edgehosts/current/audits?filters=${filters}`)
      expect(found, found.text).toMatchObject({ status: 200 })
      return found.json.listmeta.count as number
    }
    const delivered = await audits()
    expect(delivered).toBeGreaterThan(1)
    await plant.host.http('GET', `${clusterPath}/details`, { token: guest })
    expect(await audits()).toBe(delivered)
  })

  it('a change of a value is applied, and the workload answers with it', async () => {
    const writes = clusterWrites(plant, plant.cluster)
    await writes.give({ greeting: 'good evening' })
    await writes.settled()
    await eventually(async () => expect(await askWorkload(plant)).toBe('good evening'), 30_000)
  })

  it('a definition that is uploaded now lands in the slot for updates', async () => {
    const uploaded = await plant.host.output(['edgehostctl', 'definition', 'upload', '/root/definition.tgz'])
    expect(uploaded).toMatch(/is in the slot update[^]*Next: edgehostctl cluster diff/)
    await plant.host.output(['rm', '/root/definition.tgz'])
    const update = await plant.cluster.get('/v1/edge-mgmt/clusters/archive/update/details')
    expect(update, update.text).toMatchObject({ status: 200 })
    expect(update.json.archiveUploadPath).not.toBe(plant.definition)
  })

  it('a workload that goes down makes the health Unhealthy, not the state', async () => {
    const patch = [
      { op: 'replace', path: '/spec/strategy', value: { type: 'Recreate' } },
      { op: 'replace', path: '/spec/template/spec/containers/0/image', value: 'docker.io/library/absent:1' },
    ]
    await plant.cluster.kubectl(
      '-n',
      'shop',
      'patch',
      'deployment',
      'web',
      '--type=json',
      '-p',
      JSON.stringify(patch),
    )
    await eventually(async () => {
      const { phase, health } = (await plant.cluster.details())!.status
      expect({ phase, health }).toMatchObject({ phase: 'Running', health: { status: 'Unhealthy' } })
      expect(health.reason).toMatch(/web/)
    }, 90_000)
  })

  it('the support archive describes the cluster, and has no sensitive value that a pod writes', async () => {
    const { cluster, host } = plant
    await cluster.kubectl(
      ...['run', 'teller', '--image=docker.io/library/busybox:1', '--restart=Never', '--command', '--'],
      ...['sh', '-c', `echo "a teller knows ${sensitiveValue}"; exit 3`],
    )
    await eventually(async () => {
      const phase = await cluster.kubectl('get', 'pod', 'teller', '--output=jsonpath={.status.phase}')
      expect(phase).toBe('Failed')
    }, 90_000)
    await host.output(['edgehostctl', 'support', '--file', '/root/cluster.tar.zst'])
    const text = zstdDecompressSync(
      Buffer.from(await host.sh('base64 /root/cluster.tar.zst'), 'base64'),
    ).toString()
    await host.output(['rm', '/root/cluster.tar.zst'])
    expect(text).not.toContain(sensitiveValue)
    expect(text).toContain('a teller knows ********')
    expect(text).toMatch(/^- cluster plant, Kubernetes \S+, revision 2: Running \(Running\), /m)
    for (const name of ['kubelet', 'containerd', 'steps', 'pods', 'kubernetes-events'])
      expect(text).toMatch(new RegExp(`/${name}\\.txt\0`))
    expect(text).toMatch(/Created container/)
  })

  it('a deleted cluster is gone, the host is as before, and the content stays', async () => {
    const { token } = plant
    const deleted = await plant.host.http('DELETE', clusterPath, { token })
    expect(deleted, deleted.text).toMatchObject({ status: 204 })
    expect((await plant.cluster.details())?.status).toMatchObject({
      clusterState: 'Deleting',
      phase: 'Deleting',
    })
    expect(await plant.host.http('DELETE', clusterPath, { token })).toMatchObject({ status: 204 })
    await plant.cluster.gone()
    await eventually(async () => {
      expect(changesBetween(plant.before, await readHostState(plant.host))).toEqual([])
    }, 20_000)
    expect((await plant.cluster.ownEvents())[0]).toMatchObject({ reason: 'Deleted', clusterUid: uid })
    await eventually(async () => expect(await hostInCluster()).toBe('pending unknown false'))
    const bundles = await plant.cluster.get('/v1/edge-mgmt/content/bundles')
    expect(bundles.json.items).toHaveLength(1)
    expect(await plant.host.http('DELETE', clusterPath, { token })).toMatchObject({ status: 404 })
  })
})
