import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { CertificateDetails } from '../../../src/cluster/schemas.ts'
import { clusterClient, clusterPath, type ClusterClient } from '../../e2e/cluster/cluster-client.ts'
import { bootClusterHost, type ClusterHost } from '../../e2e/cluster/cluster-host.ts'
import { killDaemon } from '../../e2e/cluster/kills.ts'
import { expectWorks } from '../../e2e/cluster/workload.ts'
import { eventually } from '../../e2e/host/eventually.ts'
import { isKitMissing, type KitVersion } from '../../support/kubernetes-kit.ts'

let plant: ClusterHost | undefined
let cluster: ClusterClient

const minute = 60_000
const validityMinutes = 10
const silences = '/dev/shm/silences'
/** What a renewal under way notes on the disk. */
const renewalNote = '/var/lib/edgehostd/cluster/kubeadm/renewal/note.json'
/** The files that kubeadm renews, as they were after the first renewal. */
const oldFiles = '/root/old-certificates.tar'
const filesOfKubeadm = [
  '/etc/kubernetes/pki',
  ...['admin', 'super-admin', 'controller-manager', 'scheduler'].map(
    (each) => `/etc/kubernetes/${each}.conf`,
  ),
]

// Asks the API server twice a second, and writes down after each silence how many seconds it was.
const asker = `last=$(date +%s%N)
while :; do
  if curl -sk -m 2 -o /dev/null https://10.77.0.1:6443/readyz; then
    now=$(date +%s%N)
    echo $(( (now - last) / 1000000 )) >> ${silences}
    last=$now
  fi
  sleep 0.5
done`

async function certificates(): Promise<CertificateDetails> {
  const reply = await cluster.get(`${clusterPath}/certificates`)
  expect(reply, reply.text || reply.failure).toMatchObject({ status: 200 })
  expect(reply.text).not.toMatch(/PRIVATE KEY|BEGIN/)
  return reply.json as CertificateDetails
}
const endOf = ({ certificates: all }: CertificateDetails, name: string) => {
  const found = all.flatMap(({ childCerts }) => childCerts).find((each) => each.name === name)
  expect(found, name).toBeDefined()
  return Date.parse(found!.expirationDate)
}
const renewals = async () =>
  (await cluster.ownEvents()).filter(({ reason }) => reason === 'CertificatesRenewed').length
/** Milliseconds between two answers of the API server, at most, since the last call. */
async function longestSilence(): Promise<number> {
  const { host } = plant!
  const text = await host.output(['cat', silences])
  await host.output(['truncate', '--size=0', silences])
  const all = text.trim().split('\n').map(Number)
  expect(all.length).toBeGreaterThan(5)
  return Math.max(...all)
}
const namesOf = (details: CertificateDetails) =>
  details.certificates.map(({ name, childCerts }) => [name, childCerts.map((each) => each.name).sort()])
const restartsOfWeb = () =>
  cluster.kubectl(
    '-n',
    'shop',
    'get',
    'pods',
    '-o',
    'jsonpath={.items[*].status.containerStatuses[*].restartCount}',
  )

async function bootCluster(version: KitVersion): Promise<void> {
  plant = await bootClusterHost({
    version,
    definition: { clusterConfiguration: `certificateValidityPeriod: ${validityMinutes}m` },
  })
  cluster = clusterClient(plant)
  await cluster.create()
  await cluster.reach('Running')
}
const startAsker = () => plant!.host.output(['systemd-run', '--unit=asker', 'bash', '-c', asker])

/** Asks for a renewal. @returns its uid */
async function askForRenewal(): Promise<string> {
  const { host, token } = plant!
  const reply = await host.http('POST', `${clusterPath}/renew-certificates`, { token })
  expect(reply, reply.text || reply.failure).toMatchObject({ status: 201 })
  return reply.json.uid as string
}

/**
 * Waits until a renewal is begun, or the files are written and who reads them is started again. It is looked at within the host, since
 * kubeadm takes less than a second; on a slow machine it may have come further.
 */
const reach = (phase: 'begun' | 'renewed') =>
  plant!.host.output(
    [
      ...['bash', '-c', 'until grep -qs "$1" "$2"; do sleep 0.02; done', 'bash'],
      ...[phase === 'begun' ? '"phase":' : '"phase":"renewed"', renewalNote],
    ],
    { timeoutMs: 120_000 },
  )

async function expectRenewed(uid: string): Promise<void> {
  await eventually(async () => {
    const { renewal } = await certificates()
    expect(renewal?.uid).toBe(uid)
    expect(renewal?.endTimestamp, renewal?.reason).toBeDefined()
  }, 240_000)
  expect(await plant!.host.sh(`test -e ${renewalNote} || echo none`)).toBe('none\n')
}

/** Those that kubeadm renews, one of each kind. */
const renewed = ['apiserver', 'admin.conf', 'etcd-server', 'scheduler.conf', 'front-proxy-client']

async function renewWithKills(): Promise<void> {
  const before = await certificates()
  const done = await renewals()
  const [uid, again] = [await askForRenewal(), await askForRenewal()]
  expect(again).toBe(uid)
  for (const phase of ['begun', 'renewed'] as const) {
    await reach(phase)
    await eventually(async () => expect(await killDaemon(plant!.host), phase).toBe(true), 20_000)
  }
  await expectRenewed(uid)
  // The step went on without the daemon, which found its end.
  expect(await renewals()).toBe(done + 1)
  const after = await certificates()
  for (const name of renewed) expect(endOf(after, name), name).toBeGreaterThan(endOf(before, name))
  await cluster.expectHealthy(120_000)
}

async function renewWithPowerCuts(): Promise<void> {
  const before = await certificates()
  const uid = await askForRenewal()
  for (const phase of ['begun', 'renewed'] as const) {
    await reach(phase)
    await plant!.host.cutPower()
  }
  await expectRenewed(uid)
  const after = await certificates()
  for (const name of renewed) expect(endOf(after, name), name).toBeGreaterThan(endOf(before, name))
  await cluster.expectHealthy(240_000)
  await expectWorks(plant!, cluster, 120_000)
}

describe.skipIf(isKitMissing())(
  'a cluster whose certificates last ten minutes',
  { timeout: 1_800_000 },
  () => {
    beforeAll(async () => {
      await bootCluster('1.34.4')
      await startAsker()
    })
    afterAll(() => plant?.host.unplug())

    it('shows them below their authorities', async () => {
      const details = await certificates()
      expect(namesOf(details)).toEqual([
        [
          'ca',
          [
            ...['admin.conf', 'apiserver', 'apiserver-kubelet-client', 'controller-manager.conf'],
            ...['kubelet-client', 'scheduler.conf', 'super-admin.conf'],
          ],
        ],
        ['etcd-ca', ['apiserver-etcd-client', 'etcd-healthcheck-client', 'etcd-peer', 'etcd-server']],
        ['front-proxy-ca', ['front-proxy-client']],
        ['kubelet-server-ca', ['kubelet-server']],
      ])
      const left = endOf(details, 'apiserver') - Date.now()
      expect(left).toBeLessThan(validityMinutes * minute)
      const next = Date.parse(details.earliestAutoRenewalTime!)
      expect((endOf(details, 'admin.conf') - next) / minute).toBeCloseTo(validityMinutes / 3, 1)
    })

    it('are renewed when asked for, once, over a killed daemon, and the API answers but for the restart', async () => {
      await renewWithKills()
      const silence = await longestSilence()
      console.log(`asked for: the API server was silent for ${silence} ms`)
      expect(silence).toBeLessThan(60_000)
      await plant!.host.output(['tar', '--create', '--file', oldFiles, ...filesOfKubeadm])
    })

    it('are renewed by themselves before their end, and workloads keep running', async () => {
      const restarts = await restartsOfWeb()
      const done = await renewals()
      const before = await certificates()
      await eventually(async () => expect(await renewals()).toBe(done + 1), (validityMinutes + 2) * minute)
      expect(Date.now()).toBeLessThan(endOf(before, 'apiserver'))
      expect((await certificates()).needsRenewal).toBe(false)
      await cluster.expectHealthy(120_000)
      const silence = await longestSilence()
      console.log(`by itself: the API server was silent for ${silence} ms`)
      expect(silence).toBeLessThan(60_000)
      expect(await restartsOfWeb()).toBe(restarts)
      await expectWorks(plant!, cluster)
    })

    it('are renewed over a power cut while they are written, and another while the control plane starts with them', async () => {
      await renewWithPowerCuts()
    })

    it('that have all ended while the host was off are renewed, and the cluster comes back', async () => {
      const { host } = plant!
      // It went off within a renewal, when that had written its files.
      await askForRenewal()
      await reach('renewed')
      // First what starts units again: a start of it would cancel the stop of the others.
      await host.output(['systemctl', 'stop', 'edgehostd.service', 'edgehostd-step-*'])
      await host.output(['systemctl', 'stop', 'kubelet.service', 'edgehostd-containerd.service'])
      expect(await host.read(renewalNote)).toContain('renewed')
      await host.run(['pkill', '--full', 'kube-apiserver|kube-controller-manager|kube-scheduler|etcd'])
      // As on a host that was off for a year, which was not there for the last renewals; also the certificate that the kubelet has got from Kubernetes.
      await host.output(['tar', '--extract', '--file', oldFiles, '--directory', '/'])
      const pki = '/var/lib/kubelet/pki'
      const first = (await host.output(['sh', '-c', `ls ${pki}/kubelet-client-2*.pem | head -1`])).trim()
      await host.output(['ln', '-sf', first, `${pki}/kubelet-client-current.pem`])
      const ends = await host.output([
        ...['openssl', 'x509', '-noout', '-enddate', '-in', '/etc/kubernetes/pki/apiserver.crt'],
      ])
      const end = Date.parse(ends.trim().slice('notAfter='.length))
      await eventually(
        async () => expect(Date.now()).toBeGreaterThan(end + 5_000),
        (validityMinutes + 1) * minute,
      )
      await host.output(['systemctl', 'start', 'edgehostd-containerd', 'edgehostd'])
      await eventually(async () => expect(await cluster.kubectl('get', '--raw=/readyz')).toBe('ok'), 240_000)
      await cluster.expectHealthy(240_000)
      await expectWorks(plant!, cluster, 120_000)
      // The kubelet renews its certificate again: the last thing that the renewal does, after the cluster runs.
      await eventually(
        async () =>
          expect(await host.read('/etc/kubernetes/kubelet.conf')).toContain('kubelet-client-current.pem'),
        120_000,
      )
      expect(endOf(await certificates(), 'kubelet-client')).toBeGreaterThan(Date.now())
    })
  },
)

describe.skipIf(isKitMissing())('the certificates of Kubernetes 1.33', { timeout: 1_200_000 }, () => {
  beforeAll(() => bootCluster('1.33.13'))
  afterAll(() => plant?.host.unplug())

  it('are renewed when asked for, over a killed daemon', renewWithKills)
  it('are renewed over power cuts, and the cluster comes back', renewWithPowerCuts)
})
