import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, readdir, rename, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { eventually } from './eventually.ts'
import { output, run } from './process.ts'
import { cache, releaseName } from './roots.ts'

/** Debian's prometheus, unpacked and not installed: no service starts on the test machine. */
export async function fetchPrometheus(): Promise<{ prometheus: string; promtool: string }> {
  const folder = join(cache, `prometheus-${await releaseName()}`)
  const programs = {
    prometheus: join(folder, 'usr/bin/prometheus'),
    promtool: join(folder, 'usr/bin/promtool'),
  }
  if (existsSync(folder)) return programs
  const making = `${folder}.${process.pid}`
  await mkdir(making, { recursive: true })
  try {
    const script = `
      cd "$1"
      get() { apt-get download -qq -o APT::Sandbox::User=root prometheus; }
      get || { apt-get update -qq; get; }
    `
    await output('sh', ['-euc', script, 'sh', making], { timeoutMs: 300_000 })
    const deb = (await readdir(making)).find((file) => file.endsWith('.deb'))!
    await output('dpkg-deb', ['--extract', join(making, deb), making], { timeoutMs: 300_000 })
    await rm(join(making, deb))
    await rename(making, folder)
  } finally {
    await rm(making, { recursive: true, force: true })
  }
  return programs
}

/** A result of a query. */
export interface Series {
  readonly metric: Readonly<Record<string, string>>
  readonly value: number
}

/** A prometheus that runs. */
export interface Prometheus {
  /** Reads the present value of an expression by its HTTP API. */
  query(expression: string): Promise<Series[]>
  /** `data` of any path of its HTTP API. */
  ask(path: string): Promise<unknown>
  stop(): Promise<void>
}

/**
 * Starts prometheus in the network namespace of a process, with its storage in a folder of its own.
 * @param config prometheus.yml
 */
export async function startPrometheus(namespace: number, config: string): Promise<Prometheus> {
  const { prometheus } = await fetchPrometheus()
  const folder = await mkdtemp(join(tmpdir(), 'edgehostd-prometheus-'))
  await writeFile(join(folder, 'prometheus.yml'), config)
  const address = '127.0.0.1:9090'
  const child = spawn(
    'nsenter',
    [
      ...['-t', String(namespace), '-n', 'setpriv', '--pdeathsig', 'KILL', prometheus],
      ...[`--config.file=${folder}/prometheus.yml`, `--storage.tsdb.path=${folder}/data`],
      ...[`--web.listen-address=${address}`, '--log.level=warn'],
    ],
    { stdio: ['ignore', 'ignore', 'pipe'], env: { PATH: '/usr/sbin:/usr/bin:/sbin:/bin' } },
  )
  let complaints = ''
  child.stderr.on('data', (chunk: Buffer) => (complaints += chunk.toString()))
  const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()))
  const curl = (path: string) =>
    run('nsenter', [
      ...['-t', String(namespace), '-n', 'curl', '--silent', '--fail', '--globoff'],
      `http://${address}${path}`,
    ])
  const stop = async () => {
    child.kill('SIGTERM')
    await ended
    await rm(folder, { recursive: true, force: true })
  }
  const ask = async (path: string) => {
    const { stdout } = await curl(path)
    return (JSON.parse(stdout) as { readonly data: unknown }).data
  }
  try {
    await eventually(async () => {
      if (child.exitCode !== null) throw new Error(`prometheus ended with ${child.exitCode}:\n${complaints}`)
      if ((await curl('/-/ready')).exitCode !== 0) throw new Error(`prometheus is not ready:\n${complaints}`)
    }, 60_000)
  } catch (error) {
    await stop()
    throw error
  }
  return {
    ask,
    async query(expression) {
      const { result } = (await ask(`/api/v1/query?query=${encodeURIComponent(expression)}`)) as {
        readonly result: readonly {
          readonly metric: Series['metric']
          readonly value: readonly [number, string]
        }[]
      }
      return result.map(({ metric, value }) => ({ metric, value: Number(value[1]) }))
    },
    stop,
  }
}
