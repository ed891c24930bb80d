import { readFileSync } from 'node:fs'
import type { Host } from './host.ts'

/** A reply to a program inside a host. */
export interface InsideReply {
  readonly status: number
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>
  /** Empty for HEAD. */
  readonly body: Buffer
}

const files = { head: '/run/reply-head', body: '/run/reply-body' }

/**
 * Sends a request by curl from inside a host.
 * @param args more arguments of curl
 * @throws Error when there is no reply
 */
export async function askInside(host: Host, url: string, args: readonly string[] = []): Promise<InsideReply> {
  const status = await host.output([
    ...['curl', '--silent', '--show-error', '--globoff', '--output', files.body, '--dump-header', files.head],
    ...[...args, '--write-out', '%{http_code}', url],
  ])
  const [, ...lines] = (await host.read(files.head)).trim().split('\r\n')
  const headers = lines.map((line): [string, string] => {
    const colon = line.indexOf(':')
    return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()]
  })
  // With --head curl writes the header there; for an empty body it writes nothing.
  const body = args.includes('--head')
    ? Buffer.alloc(0)
    : readFileSync(`/proc/${host.leader}/root${files.body}`)
  await host.output(['rm', '-f', ...Object.values(files)])
  return { status: Number(status), headers: Object.fromEntries(headers), body }
}
