import { createReadStream } from 'node:fs'
import { stat } from 'node:fs/promises'
import { pipeline } from 'node:stream/promises'
import { createGzip } from 'node:zlib'
import { decompress } from '../../archive/compression.ts'
import { chartLimits } from '../../archive/chart-archive.ts'
import { readTar } from '../../archive/tar-reader.ts'
import { escapeInvisible } from '../../base/printable.ts'
import { createBoundedRunner } from '../../system/bounded-memory.ts'
import { CommandFailed, type CommandRunner } from '../../system/runner.ts'

/** Bytes that the data of a Secret may have: `MaxSecretSize` of Kubernetes. */
export const secretBytes = 2 ** 20
// Text may become five times as large: twice by base64, of which gzip finds less that repeats.
const surelySmallBytes = secretBytes / 5

/**
 * Size of the Secret in which helm keeps a release: its chart without the charts in it, the values and the rendered text, as JSON with
 * base64, by gzip and in base64 again (`encodeRelease` in pkg/storage/driver/util.go of helm).
 * @param file the archive of the chart @param texts the rendered text, and the values
 * @returns bytes, without some that depend on helm, such as its own defaults; 0 where it is surely small
 */
export async function releaseBytes(file: string, texts: readonly string[]): Promise<number> {
  const textBytes = texts.reduce((sum, text) => sum + text.length, 0)
  if ((await stat(file)).size + textBytes <= surelySmallBytes) return 0
  let bytes = 0
  await pipeline(contentOf(file, texts), createGzip({ level: 9 }), async (zipped: AsyncIterable<Buffer>) => {
    for await (const chunk of zipped) bytes += chunk.length
  })
  return Math.ceil(bytes / 3) * 4
}

async function* contentOf(file: string, texts: readonly string[]): AsyncGenerator<string> {
  const archive = decompress(createReadStream(file), chartLimits)
  for await (const { name, kind, content } of readTar(archive, chartLimits)) {
    const path = name.slice(name.indexOf('/') + 1)
    if (kind !== 'file' || /^(charts\/|Chart\.|values\.yaml$)/.test(path)) continue
    const parts: Buffer[] = []
    for await (const part of content) parts.push(part)
    yield JSON.stringify({ name: path, data: Buffer.concat(parts).toString('base64') })
  }
  for (const text of texts) yield JSON.stringify(text)
}

/** The chart to render. */
interface Rendering {
  readonly release: string
  readonly namespace: string
  /** The archive of the chart, or its folder. */
  readonly chart: string
  readonly valuesFile: string
  /** Versions of the API that are there when it is installed, beside Kubernetes' own. */
  readonly apiVersions: readonly string[]
}

/** Why there is no result. */
interface Refusal {
  /** The end of a sentence. */
  readonly refusal: string
  /** Set where helm was not run: that is no fault of its input. */
  readonly code?: 'ProgramUnusable'
}

/** Renders charts without a cluster. */
export interface Helm {
  /** @returns the rendered YAML with the custom resource definitions, without tests; or why there is none, as the end of a sentence */
  render(rendering: Rendering): Promise<{ readonly text: string } | Refusal>
  /** Packs the folder of a chart. @returns its archive, below `folder`; or why there is none */
  pack(chart: string, folder: string): Promise<{ readonly file: string } | Refusal>
}

const timeoutMs = 60_000
// While it renders, helm does not end by SIGTERM: timeout(1) kills it soon after that, and where this program was killed itself.
const timeout = ['--kill-after=0.2', `${timeoutMs / 1_000 + 5}`]
// As much as all texts of a definition may have.
const maxOutputBytes = 268_435_456
const shownCharacters = 600

interface HelmOptions {
  readonly runner: CommandRunner
  /** Path of helm. */
  readonly program: string
  /** Folder for files of its own. */
  readonly folder: string
  readonly kubernetesVersion: string
  /** Masks sensitive values, which helm quotes; before a reason is cut. */
  readonly hide: (text: string) => string
  readonly signal: AbortSignal
}

export function createHelm(options: HelmOptions): Helm {
  const { program, folder, kubernetesVersion, hide, signal } = options
  const runner = createBoundedRunner(options.runner)
  const environment = Object.fromEntries(
    ['HOME', 'HELM_CACHE_HOME', 'HELM_CONFIG_HOME', 'HELM_DATA_HOME'].map((name) => [name, folder]),
  )

  async function run(args: readonly string[]): Promise<{ readonly text: string } | Refusal> {
    try {
      const { exitCode, stdout, stderr } = await runner.run('timeout', [...timeout, program, ...args], {
        timeoutMs,
        maxOutputBytes,
        environment,
        signal,
      })
      if (exitCode === 0) return { text: stdout }
      return { refusal: reasonIn(hide(stderr), exitCode) }
    } catch (error) {
      if (!(error instanceof CommandFailed) || signal.aborted) throw error
      switch (error.reason) {
        case 'timed-out':
          return { refusal: `cannot be rendered: helm takes longer than ${timeoutMs / 1_000} s` }
        case 'output-too-large':
          return { refusal: `cannot be rendered: it becomes larger than ${maxOutputBytes} bytes` }
        case 'too-much-memory':
          return { refusal: `cannot be rendered: helm ${error.detail}` }
        case 'not-started':
          return { refusal: `cannot be read: helm ${error.detail}`, code: 'ProgramUnusable' }
        case 'ended':
          throw error
      }
    }
  }

  return {
    render: ({ release, namespace, chart, valuesFile, apiVersions }) =>
      run([
        ...['template', release, chart, '--namespace', namespace, '--values', valuesFile],
        ...['--include-crds', '--skip-tests'],
        ...(kubernetesVersion === '' ? [] : ['--kube-version', kubernetesVersion]),
        ...apiVersions.flatMap((version) => ['--api-versions', version]),
      ]),
    async pack(chart, target) {
      const ended = await run(['package', chart, '--destination', target])
      if ('refusal' in ended) return ended
      const file = /saved it to: (.+)$/m.exec(ended.text)?.[1]
      return file === undefined ? { refusal: 'cannot be packed: helm names no file' } : { file }
    },
  }
}

/** The error of helm without its repetitions and advice. */
function reasonIn(stderr: string, exitCode: number | undefined): string {
  const at = stderr.search(/^Error: /m)
  const text = at < 0 ? stderr.trim() : stderr.slice(at + 'Error: '.length)
  const lines = text.split('\n').filter((line) => line.trim() !== '' && !line.startsWith('Use --debug flag'))
  const reason = escapeInvisible(lines.join('; ')).slice(0, shownCharacters)
  return `cannot be rendered: ${reason === '' ? `helm ended with ${exitCode ?? 'a signal'}` : reason}`
}
