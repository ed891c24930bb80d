import { execFile, execFileSync, spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, open, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { createConnection } from '../../src/kubernetes/connection.ts'
import { createKubernetesClient } from '../../src/kubernetes/create-client.ts'
import { createRequests, unlessMissing } from '../../src/kubernetes/request.ts'
import { kit, type KitVersion } from './kubernetes-kit.ts'
import { freePort } from './free-port.ts'

/** A real kube-apiserver and its etcd on loopback, without any node. */
export interface KubernetesApi {
  /** Kubeconfig of an administrator. */
  readonly kubeconfig: string
  /** Folder of the programs of the kit. */
  readonly programs: string
  /**
   * Sends a request over a kept connection: each kubectl would take a fifth of a second of a processor.
   * @param body of a merge patch, or of a new object
   * @returns the reply; undefined where there is no such object
   */
  ask(method: 'GET' | 'PATCH' | 'POST' | 'DELETE', path: string, body?: object): Promise<unknown>
  /** Runs kubectl. @returns its standard output */
  kubectl(...args: readonly string[]): Promise<string>
  /** Writes and deletes straight in etcd. */
  etcdctl(...args: readonly string[]): string
  /** Makes etcd forget all that was before this moment. */
  compact(): void
  /** `kill -9` of the API server. */
  kill(): Promise<void>
  /** Starts the API server, and waits until it is ready. */
  start(): Promise<void>
  /** Starts kube-controller-manager, so that workloads get pods; the pods stay pending, since there is no node. */
  startControllers(): Promise<void>
  /** New certificate authorities, certificates and kubeconfig; used from the next start on. */
  renewCertificates(): Promise<void>
  stop(): Promise<void>
}

const run = promisify(execFile)

/** @param flags more flags of kube-apiserver */
export async function startKubernetesApi(
  version: KitVersion = '1.34.4',
  flags: readonly string[] = [],
): Promise<KubernetesApi> {
  const found = await kit(version)
  if (found === undefined) throw new Error('no kit')
  const { programs } = found
  const folder = await mkdtemp(join(tmpdir(), 'kubernetes-api-'))
  const [port, etcdPort, peerPort] = [await freePort(), await freePort(), await freePort()]
  const etcdUrl = `http://127.0.0.1:${etcdPort}`
  const kubeconfig = join(folder, 'super-admin.conf')
  const children = new Set<ChildProcess>()
  const killAll = () => children.forEach((child) => child.kill('SIGKILL'))
  process.once('exit', killAll)

  async function begin(program: string, args: readonly string[]): Promise<ChildProcess> {
    const log = await open(join(folder, `${program}.log`), 'a')
    const child = spawn(join(programs, program), args, { stdio: ['ignore', log.fd, log.fd], cwd: folder })
    children.add(child)
    child.once('exit', () => children.delete(child))
    await once(child, 'spawn')
    await log.close()
    return child
  }

  async function renewCertificates(): Promise<void> {
    await rm(join(folder, 'pki'), { recursive: true, force: true })
    await rm(kubeconfig, { force: true })
    const config = join(folder, 'kubeadm.yaml')
    await writeFile(config, kubeadmConfig(folder, version, port))
    const kubeadm = (...args: readonly string[]) =>
      run(join(programs, 'kubeadm'), ['init', 'phase', ...args, '--config', config])
    await kubeadm('certs', 'all')
    await kubeadm('kubeconfig', 'super-admin', '--kubeconfig-dir', folder)
  }

  const connection = createConnection(() => readFile(kubeconfig, 'utf8'))
  const requests = createRequests({ connection })
  const ask: KubernetesApi['ask'] = (method, path, body) =>
    unlessMissing(() =>
      requests.ask({
        ...{ method, path },
        ...(body === undefined
          ? {}
          : {
              body: Buffer.from(JSON.stringify(body)),
              contentType: method === 'PATCH' ? 'application/merge-patch+json' : 'application/json',
            }),
      }),
    )

  let server: ChildProcess | undefined

  async function start(): Promise<void> {
    server = await begin('kube-apiserver', [
      ...['--etcd-servers', etcdUrl, '--secure-port', String(port), '--bind-address', '127.0.0.1'],
      ...['--tls-cert-file', 'pki/apiserver.crt', '--tls-private-key-file', 'pki/apiserver.key'],
      ...['--client-ca-file', 'pki/ca.crt', '--service-account-key-file', 'pki/sa.pub'],
      ...['--service-account-signing-key-file', 'pki/sa.key', '--authorization-mode', 'RBAC'],
      ...['--service-account-issuer', 'https://kubernetes.default.svc'],
      ...['--service-cluster-ip-range', '10.96.0.0/12', '--profiling=false', ...flags],
    ])
    const client = createKubernetesClient({ kubeconfig: () => readFile(kubeconfig, 'utf8') })
    try {
      while (!(await client.isReady())) {
        if (server.exitCode !== null)
          throw new Error(await readFile(join(folder, 'kube-apiserver.log'), 'utf8'))
        await sleep(100)
      }
    } finally {
      client.close()
    }
  }

  async function kill(): Promise<void> {
    if (server?.exitCode !== null || server.signalCode !== null) return
    server.kill('SIGKILL')
    await once(server, 'exit')
  }

  async function kubectl(...args: readonly string[]): Promise<string> {
    const all = ['--kubeconfig', kubeconfig, ...args]
    return (await run(join(programs, 'kubectl'), all, { maxBuffer: 64 * 1024 * 1024 })).stdout
  }

  // At once, so that a test can do it in the middle of a list.
  const etcdctl = (...args: readonly string[]) =>
    execFileSync(join(programs, 'etcdctl'), ['--endpoints', etcdUrl, ...args], { encoding: 'utf8' })

  function compact(): void {
    etcdctl('put', '/moment', 'now')
    const [member] = JSON.parse(etcdctl('endpoint', 'status', '-w', 'json')) as readonly {
      readonly Status: { readonly header: { readonly revision: number } }
    }[]
    etcdctl('compact', String(member?.Status.header.revision))
  }

  async function startControllers(): Promise<void> {
    await begin('kube-controller-manager', [
      ...['--kubeconfig', kubeconfig],
      ...['--bind-address', '127.0.0.1', '--secure-port', String(await freePort())],
      ...['--service-account-private-key-file', 'pki/sa.key', '--root-ca-file', 'pki/ca.crt'],
      // By default it makes a folder in /usr/libexec of this machine.
      ...['--flex-volume-plugin-dir', join(folder, 'volume-plugins'), '--leader-elect=false'],
    ])
    // A pod needs the service account of its namespace.
    const account = '/api/v1/namespaces/default/serviceaccounts/default'
    while ((await ask('GET', account)) === undefined) await sleep(100)
  }

  await renewCertificates()
  await begin('etcd', [
    ...['--data-dir', join(folder, 'etcd'), '--unsafe-no-fsync'],
    ...['--listen-client-urls', etcdUrl, '--advertise-client-urls', etcdUrl],
    ...['--listen-peer-urls', `http://127.0.0.1:${peerPort}`],
  ])
  await start()

  return {
    ...{ kubeconfig, programs, start, kill, startControllers, renewCertificates },
    ...{ ask, kubectl, etcdctl, compact },
    async stop() {
      connection.close()
      process.off('exit', killAll)
      const ends = [...children].map((child) => once(child, 'exit'))
      killAll()
      await Promise.all(ends)
      await rm(folder, { recursive: true, force: true })
    },
  }
}

const kubeadmConfig = (folder: string, version: string, port: number) => `
apiVersion: kubeadm.k8s.io/v1beta4
kind: InitConfiguration
localAPIEndpoint: {advertiseAddress: 192.0.2.1, bindPort: ${port}}
nodeRegistration: {name: test, criSocket: "unix:///none"}
---
apiVersion: kubeadm.k8s.io/v1beta4
kind: ClusterConfiguration
kubernetesVersion: v${version}
certificatesDir: ${join(folder, 'pki')}
encryptionAlgorithm: ECDSA-P256
controlPlaneEndpoint: 127.0.0.1:${port}
apiServer: {certSANs: [127.0.0.1]}
`
