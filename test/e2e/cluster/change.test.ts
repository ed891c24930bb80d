import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { isKitMissing } from '../../support/kubernetes-kit.ts'
import { eventually } from '../host/eventually.ts'
import { clusterClient, type ClusterClient } from './cluster-client.ts'
import { bootClusterHost, type ClusterHost } from './cluster-host.ts'
import { clusterWrites, type ClusterWrites } from './cluster-writes.ts'
import { killDaemon } from './kills.ts'
import { differing, readApplications, readContainers, readField, readVersions } from './kubernetes-objects.ts'
import { sensitiveValue, webTemplate, type PlantPack, type PlantWish } from './plant-definition.ts'
import { askWorkload } from './workload.ts'

let plant: ClusterHost | undefined
const host = () => plant!.host
let cluster: ClusterClient
let writes: ClusterWrites

const token = 'second token 0907'
const mask = '********'

/** Definitions with another pack of a name. */
const withPack =
  (name: string, change: (pack: PlantPack) => Partial<PlantPack>): NonNullable<PlantWish['packs']> =>
  (usual) =>
    usual.map((pack) => (pack.name === name ? { ...pack, ...change(pack) } : pack))
const replicas = (count: number) =>
  withPack('greeting', ({ values }) => ({ values: values.replace('replicas: 1', `replicas: ${count}`) }))
/** A manifest with one more variable, which is required. */
const coloured: PlantWish = {
  packs: withPack('greeting', ({ manifests = {} }) => ({
    manifests: {
      greeting: manifests.greeting!.replace('  text: ', "  colour: '{{ .spectro.var.colour }}'\n  text: "),
    },
  })),
  variables: [{ name: 'colour', displayName: 'Colour', format: 'string', required: true }],
}

const storedToken = async () =>
  Buffer.from(await readField(cluster, 'shop', 'secret/web', '.data.token'), 'base64').toString()
const greetingText = () => readField(cluster, 'greeting', 'configmap/hello', '.data.text')
const helm = (command: string) =>
  host().sh(
    `KUBECONFIG=/etc/kubernetes/admin.conf /var/lib/edgehostd/cluster/programs/helm/current/helm ${command}`,
  )
const helmHistory = async () =>
  JSON.parse(await helm('history web-web --namespace shop --output json')) as readonly {
    revision: number
    status: string
    description: string
  }[]
const flagsOfApiServer = () => host().sh('tr "\\0" " " < /proc/$(pgrep -x kube-apiserver)/cmdline')

/** The pod of before may answer until it is gone. */
const workloadSays = (text: string) =>
  eventually(async () => expect(await askWorkload(plant!)).toBe(text), 30_000)

/** Without those of the control plane. */
const workloads = async () =>
  [...(await readContainers(cluster))].filter(([pod]) => !/^kube-system\/(kube-(api|con|sch)|etcd)/.test(pod))

describe.skipIf(isKitMissing())('changes of a running cluster', { timeout: 400_000 }, () => {
  beforeAll(async () => {
    plant = await bootClusterHost()
    cluster = clusterClient(plant)
    writes = clusterWrites(plant, cluster)
    await cluster.create()
    await cluster.reach('Running')
    await writes.settled()
  })
  afterAll(() => plant?.host.unplug())

  it('what GET gave is no change: at once, without a revision, a step, or a write to the API server', async () => {
    const { configuration, etag } = await writes.document()
    const steps = (await cluster.details())!.status.steps
    const [versions, applied] = [await readVersions(cluster), await readApplications(cluster)]
    // The packs were applied, so it counts.
    expect(applied).toBeGreaterThan(3)
    const reply = await writes.put(configuration, { 'If-Match': etag })
    expect(reply, reply.text).toMatchObject({ status: 204, headers: { etag: [etag] } })
    console.log(`an apply that changes nothing: ${Math.round(reply.waitedMs)} ms`)
    expect(reply.waitedMs).toBeLessThan(1_000)
    expect(await writes.revisions()).toHaveLength(1)
    expect((await cluster.details())!.status.steps).toEqual(steps)
    expect(differing(versions, await readVersions(cluster))).toEqual([])
    expect(await readApplications(cluster)).toBe(applied)
  })

  it('a value of one pack changes only objects of that pack, and no container', async () => {
    const [versions, containers] = [await readVersions(cluster), await readContainers(cluster)]
    await writes.give({ token })
    expect(await writes.settled()).toMatchObject({ revision: 2, by: 'chief', origin: 'update' })
    expect(await storedToken()).toBe(token)
    const changed = differing(versions, await readVersions(cluster))
    expect(changed).toContain('Secret shop/web')
    const ofHelm = /^Secret shop\/sh\.helm\.release\.v1\.web-web\.v\d+$/
    expect(changed.filter((name) => name !== 'Secret shop/web' && !ofHelm.test(name))).toEqual([])
    expect(differing(containers, await readContainers(cluster))).toEqual([])
  })

  it('the mask that is sent back keeps the value, and a write on a state that has passed is refused', async () => {
    const { configuration, etag } = await writes.document()
    const variables = configuration.spec!.profileVariables!
    expect(variables.find(({ name }) => name === 'token')?.value).toBe(mask)
    const greeted = {
      ...configuration,
      spec: {
        ...configuration.spec,
        profileVariables: variables.map((each) =>
          each.name === 'greeting' ? { ...each, value: 'good day' } : each,
        ),
      },
    }
    const refused = await writes.put(greeted, { 'If-Match': '"of-another-time"' })
    expect(refused).toMatchObject({ status: 412, json: { code: 'PreconditionFailed' } })
    const reply = await writes.put(greeted, { 'If-Match': etag })
    expect(reply, reply.text).toMatchObject({ status: 204 })
    expect((await writes.put(configuration, { 'If-Match': etag })).status).toBe(412)
  })

  it('of the writes while a change is under way the last one wins', async () => {
    await writes.give({ greeting: 'good evening' })
    await writes.give({ greeting: 'good night' })
    expect(await writes.settled()).toMatchObject({ revision: 5 })
    const outcomes = (await writes.revisions()).map(({ revision, outcome }) => `${revision} ${outcome}`)
    // On a slow host the first one may have come before the second one was examined.
    expect(['5 good, 4 superseded', '5 good, 4 good']).toContain(outcomes.slice(0, 2).join(', '))
    expect(await greetingText()).toBe('good night')
    await workloadSays('good night')
    expect(await storedToken()).toBe(token)
  })

  it('what is changed or deleted by hand is put right within a minute and told; the field of another stays', async () => {
    const since = new Date()
    const patch = (namespace: string, name: string, change: object) =>
      cluster.kubectl('-n', namespace, 'patch', name, '--type=merge', '-p', JSON.stringify(change))
    await patch('greeting', 'deployment/hello', {
      ...{ spec: { replicas: 2 }, metadata: { annotations: { note: 'mine' } } },
    })
    await patch('shop', 'secret/web', { data: { token: Buffer.from('by hand').toString('base64') } })
    await cluster.kubectl('-n', 'greeting', 'delete', 'configmap', 'hello')
    await eventually(async () => expect(await greetingText()).toBe('good night'), 60_000)
    await eventually(async () => expect(await storedToken()).toBe(token), 60_000)
    const countOf = () => readField(cluster, 'greeting', 'deployment/hello', '.spec.replicas')
    await eventually(async () => expect(await countOf()).toBe('1'), 60_000)
    expect(Date.now() - since.getTime()).toBeLessThan(60_000)
    expect(await readField(cluster, 'greeting', 'deployment/hello', '.metadata.annotations.note')).toBe(
      'mine',
    )
    await writes.told(since, 'ObjectCorrected', /^ConfigMap greeting\/hello: it was deleted/)
    await writes.told(since, 'ObjectCorrected', /^Deployment greeting\/hello: changed .*spec\.replicas/)
    await writes.told(since, 'ObjectCorrected', /^Secret shop\/web: changed .*data\.token/)
    expect(await writes.revisions()).toHaveLength(5)
  })

  it('another definition from the slot for updates keeps the values, and only the pack that differs is applied', async () => {
    await cluster.expectHealthy(30_000)
    const [versions, containers] = [await readVersions(cluster), await readContainers(cluster)]
    await writes.take({ version: '1.1.0', packs: replicas(2) })
    const { definition } = await writes.settled()
    expect(definition).toEqual({ name: 'plant', version: '1.1.0' })
    const changed = differing(versions, await readVersions(cluster))
    expect(changed).toContain('Deployment greeting/hello')
    expect(changed.filter((name) => !/^(Deployment|ReplicaSet|Pod) greeting\/hello/.test(name))).toEqual([])
    const others = differing(containers, await readContainers(cluster))
    expect(others).toEqual([expect.stringMatching(/^greeting\/hello-/)])
    expect(await storedToken()).toBe(token)
  })

  it('a required variable without a value holds the change, and the cluster runs on; the value releases it', async () => {
    const [good, versions] = [(await writes.newest()).revision, await readVersions(cluster)]
    await writes.take({ ...coloured, version: '1.2.0' })
    const held = await writes.newest()
    expect(held).toMatchObject({ revision: good + 1, outcome: 'held', isActive: false })
    expect(held.reason).toContain('colour')
    const { status } = (await cluster.details())!
    expect(status).toMatchObject({ phase: 'Running', revision: good, health: { status: 'Healthy' } })
    expect(status.clusterConditions).toContainEqual(
      expect.objectContaining({ type: 'ClusterUpdateAccepted', status: 'False', reason: 'UpdateHeld' }),
    )
    expect(differing(versions, await readVersions(cluster))).toEqual([])

    await writes.give({ colour: 'red' })
    expect(await writes.settled()).toMatchObject({ revision: good + 2 })
    expect(await readField(cluster, 'greeting', 'configmap/hello', '.data.colour')).toBe('red')
    expect(await storedToken()).toBe(token)
  })

  it('a chart whose pod never starts goes back by itself, the reason names pod and container, and the next change goes through', async () => {
    await host().configure('update', 'cluster: {update: {timeoutSeconds: 12}}\n')
    const [last] = (await helmHistory()).filter(({ status }) => status === 'deployed')
    const good = (await writes.newest()).revision
    const since = new Date()
    const broken = webTemplate.replace(/command: .*/, "command: [/bin/busybox, sh, -c, 'exit 3']")
    await writes.take({ ...coloured, version: '1.3.0', webTemplate: broken })
    await eventually(async () => {
      const newest = await writes.newest()
      expect(newest, JSON.stringify(newest)).toMatchObject({ revision: good + 1, outcome: 'rolledBack' })
    }, 60_000)
    expect(Date.now() - since.getTime()).toBeLessThan(60_000)
    await cluster.expectHealthy(30_000)
    const [failed, active] = await writes.revisions()
    expect(failed!.reason).toMatch(/pod web-[\w-]+: container web: .*exit code 3/)
    expect(active).toMatchObject({ revision: good, outcome: 'good', isActive: true })
    await writes.told(since, 'UpdateFailed', /container web/)
    await writes.told(since, 'RolledBack', new RegExp(`revision ${good} again`))
    const history = await helmHistory()
    expect(history.at(-1)).toMatchObject({
      ...{ status: 'deployed', description: `Rollback to ${last!.revision}` },
    })
    await workloadSays('good night')

    await host().configure('update', 'cluster: {}\n')
    await writes.give({ greeting: 'good morrow' })
    expect(await writes.settled()).toMatchObject({ revision: good + 2 })
    await workloadSays('good morrow')
    expect(await storedToken()).toBe(token)
  })

  it('a change for a later time is kept over a killed daemon, shown, and cancelled by the next write', async () => {
    const good = (await writes.newest()).revision
    const later = new Date(Date.now() + 3_600_000).toISOString()
    await writes.give({ greeting: 'much later' }, { scheduleAt: later })
    expect(await killDaemon(host())).toBe(true)
    await eventually(async () => {
      expect((await cluster.details())?.spec.scheduleAt).toBe(later)
    }, 30_000)
    expect(await writes.newest()).toMatchObject({ outcome: 'waiting', scheduleAt: later })
    await writes.give({ greeting: 'good noon' }, { scheduleAt: null })
    expect(await writes.settled()).toMatchObject({ revision: good + 2 })
    expect((await cluster.details())?.spec).not.toHaveProperty('scheduleAt')
    expect((await writes.revisions())[1]).toMatchObject({ outcome: 'superseded' })
    expect(await greetingText()).toBe('good noon')
  })

  it('a change for a time that comes while the daemon is killed is begun at its time', async () => {
    const at = new Date(Date.now() + 6_000)
    await writes.give({ greeting: 'at its time' }, { scheduleAt: at.toISOString() })
    const { revision } = await writes.newest()
    expect(await killDaemon(host())).toBe(true)
    expect(await writes.settled()).toMatchObject({ revision })
    expect(await greetingText()).toBe('at its time')
    const begun = (await cluster.ownEvents()).find(({ reason }) => reason === 'UpdateStarted')
    const after = Date.parse(begun!.metadata.creationTimestamp) - at.getTime()
    expect(after).toBeGreaterThanOrEqual(-1_000)
    expect(after).toBeLessThan(15_000)
  })

  it('another flag of the API server reconfigures the control plane while workloads keep running, and a rollback takes it back', async () => {
    const before = await workloads()
    const good = (await writes.newest()).revision
    await writes.take({
      ...{ ...coloured, version: '1.4.0' },
      packs: (usual) =>
        withPack('edge-k8s', ({ values }) => ({
          values: values.replace('profiling: "false"', 'profiling: "false"\n          event-ttl: 2h0m0s'),
        }))(coloured.packs!(usual)),
    })
    await writes.settled()
    expect(await flagsOfApiServer()).toContain('--event-ttl=2h0m0s')
    expect(await workloads()).toEqual(before)

    const reply = await writes.rollBack({ revision: good })
    expect(reply, reply.text).toMatchObject({ status: 204 })
    expect(await writes.settled()).toMatchObject({ origin: 'rollback' })
    expect(await flagsOfApiServer()).not.toContain('--event-ttl')
    expect(await workloads()).toEqual(before)
    expect(await greetingText()).toBe('at its time')
  })

  it('packs that are removed leave nothing, but the namespace in which an object of another is', async () => {
    await cluster.kubectl('-n', 'shop', 'create', 'configmap', 'mine')
    const since = new Date()
    await writes.take({
      version: '1.5.0',
      packs: (usual) => usual.filter(({ name }) => name !== 'greeting' && name !== 'web'),
    })
    await writes.settled()
    const left = async () =>
      [...(await readVersions(cluster)).keys()].filter((name) =>
        / (greeting\/|shop\/|\/greeting$|\/shop$)/.test(name),
      )
    // Kubernetes takes a moment for what is in a namespace that is deleted.
    await eventually(async () => {
      expect((await left()).sort()).toEqual([
        ...['ConfigMap shop/kube-root-ca.crt', 'ConfigMap shop/mine', 'Namespace /shop'],
        'ServiceAccount shop/default',
      ])
    }, 60_000)
    expect(await helm('list --all-namespaces --short')).toBe('')
    await writes.told(
      since,
      'StepProgress',
      /namespace shop stays, since it is not empty: ConfigMap shop\/mine/,
    )
    const { json } = await cluster.get('/v1/edge-mgmt/cluster/applications')
    const [profile] = json.clusterProfileTemplates as [{ packs: { name: string }[] }]
    expect(profile.packs.map(({ name }) => name)).toEqual(['edge-native-byoi', 'edge-k8s', 'cni-plain'])
  })

  it('no value that was ever given is in a reply, the log or the audit trail', async () => {
    const journal = await host().output(['journalctl', '--no-pager', '--output=cat'])
    const paths = ['', '/details', '/revisions', '/events', '/applications']
    const texts = await Promise.all(
      paths.map(async (path) => (await cluster.get(`/v1/edge-mgmt/cluster${path}`)).text),
    )
    for (const text of [journal, ...texts])
      for (const secret of [token, sensitiveValue]) expect(text).not.toContain(secret)
  })
})
