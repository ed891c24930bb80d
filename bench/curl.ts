import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import type { ServerProcess } from './server-process.ts'

const seconds = /^200 ([0-9.]+)$/

/**
 * The same GET some times over one connection, by curl: a reply of megabytes costs a client of Node more time than it
 * costs a server.
 * @returns from each request to its last byte, in milliseconds; the first, which opens the connection, is left out
 */
export async function timesByCurl(
  { port }: ServerProcess,
  order: {
    readonly path: string
    readonly certificate: string
    readonly token?: string
    readonly calls: number
  },
): Promise<number[]> {
  const url = `https://localhost:${port}${order.path}`
  const { stdout } = await promisify(execFile)('curl', [
    ...['--silent', '--show-error', '--cacert', order.certificate],
    ...['--header', `Authorization: ${order.token ?? ''}`, '--write-out', '%{http_code} %{time_total}\\n'],
    ...Array.from({ length: order.calls + 1 }, () => ['--output', '/dev/null', url]).flat(),
  ])
  const lines = stdout.trim().split('\n')
  return lines.slice(1).map((line) => {
    const [, time] = seconds.exec(line) ?? []
    if (time === undefined) throw new Error(`curl ${url}: ${line}`)
    return Number(time) * 1_000
  })
}
