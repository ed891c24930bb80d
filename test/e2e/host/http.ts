import { output, run } from './process.ts'

/** A request of a client. */
export interface Ask {
  /** Sent as `Authorization: <token>`. */
  readonly token?: string | undefined
  /** Sent as JSON; a string is sent as it is. */
  readonly body?: unknown
  /** Parts of a form as curl takes them: `uploadFile=@/a/file`. */
  readonly form?: readonly string[]
  /** Most bytes a second, as curl takes it: `20M`. */
  readonly limitRate?: string
  readonly headers?: Readonly<Record<string, string>>
  /** Client address of the request; `loopback` sends it from inside the host. */
  readonly from?: string
  /** PEM file to trust instead of the host's own certificate. */
  readonly cacert?: string
  readonly timeoutMs?: number
}

/** The reply, or `status` 0 and the reason why there was none. */
export interface Reply {
  readonly status: number
  /** Names in lower case; repeated fields in order. */
  readonly headers: Readonly<Record<string, readonly string[]>>
  readonly text: string
  /** The body as JSON; undefined when it is not JSON. */
  // eslint-disable-next-line @typescript-eslint/no-explicit-any -- tests look into replies of every shape
  readonly json: any
  /** From the request being sent to the end of the answer, in milliseconds. */
  readonly waitedMs: number
  /** Bytes of the request body that were sent. */
  readonly sentBytes: number
  /** The error of curl when there was no reply. */
  readonly failure: string
}

/** Sends a request by a real curl in the network namespace of a process; the certificate is always verified. */
export async function curl(
  namespace: number,
  method: string,
  url: string,
  ask: Ask & { cacert: string },
): Promise<Reply> {
  const { token, body, form = [], limitRate, headers = {}, from, cacert, timeoutMs = 60_000 } = ask
  const fields = { ...(token === undefined ? {} : { Authorization: token }), ...headers }
  if (body !== undefined && !('Content-Type' in fields))
    Object.assign(fields, { 'Content-Type': 'application/json' })
  const payload = body === undefined ? undefined : typeof body === 'string' ? body : JSON.stringify(body)
  const ended = await run(
    'nsenter',
    [
      ...[
        '-t',
        String(namespace),
        '-n',
        'curl',
        '--silent',
        '--show-error',
        '--include',
        '--globoff',
        '--path-as-is',
      ],
      ...['--http1.1', '--cacert', cacert, '--request', method, '--max-time', String(timeoutMs / 1_000)],
      ...(method === 'HEAD' ? ['--head'] : []),
      ...(from === undefined || from === 'loopback' ? [] : ['--interface', from]),
      ...Object.entries(fields).flatMap(([name, value]) => [
        '--header',
        value === '' ? `${name};` : `${name}: ${value}`,
      ]),
      ...(payload === undefined ? [] : ['--data-binary', '@-']),
      ...form.flatMap((part) => ['--form', part]),
      ...(limitRate === undefined ? [] : ['--limit-rate', limitRate]),
      ...['--write-out', '%{stderr}\n%{time_pretransfer} %{time_total} %{size_upload}', url],
    ],
    { ...(payload === undefined ? {} : { input: payload }), timeoutMs: timeoutMs + 10_000 },
  )
  return toReply(ended.stdout, ended.stderr)
}

/** Sends a request of root over the local socket of a daemon; gives status and body. @param socket path on the test machine */
export async function askSocket(
  socket: string,
  method: string,
  path: string,
  body?: unknown,
): Promise<{ readonly status: number; readonly text: string }> {
  const text = await output('curl', [
    ...['--silent', '--show-error', '--unix-socket', socket, '--request', method],
    ...(body === undefined
      ? []
      : ['--header', 'Content-Type: application/json', '--data-binary', JSON.stringify(body)]),
    ...['--write-out', '\n%{http_code}', `http://localhost${path}`],
  ])
  const end = text.lastIndexOf('\n')
  return { status: Number(text.slice(end + 1)), text: text.slice(0, end) }
}

/** Sends a request of root to the edgehostd of a host, over its local socket. `json` is an empty object where there is no body. */
export type AskAsRoot<Json> = (
  method: string,
  target: string,
  body?: unknown,
) => Promise<{ readonly status: number; readonly json: Json; readonly text: string }>

/** @param leader process id of PID 1 of the host, another one after a reboot */
export const rootOf =
  <Json>(leader: () => number): AskAsRoot<Json> =>
  async (method, target, body) => {
    const socket = `/proc/${leader()}/root/run/edgehostd/edgehostd.sock`
    const { status, text } = await askSocket(socket, method, target, body)
    return { status, text, json: (text === '' ? {} : JSON.parse(text)) as Json }
  }

function toReply(received: string, metrics: string): Reply {
  const last = metrics.lastIndexOf('\n')
  const [sent = 0, answered = 0, sentBytes = 0] = metrics
    .slice(last + 1)
    .split(' ')
    .map(Number)
  let rest = received
  let head = ''
  // Interim replies (100 Continue) precede the final one.
  do {
    const end = rest.indexOf('\r\n\r\n')
    if (end < 0) break
    head = rest.slice(0, end)
    rest = rest.slice(end + 4)
  } while (/^HTTP\/\S+ 1\d\d/.test(head))
  const [statusLine = '', ...lines] = head.split('\r\n')
  const headers: Record<string, string[]> = {}
  for (const line of lines) {
    const colon = line.indexOf(':')
    ;(headers[line.slice(0, colon).toLowerCase()] ??= []).push(line.slice(colon + 1).trim())
  }
  return {
    status: Number(statusLine.split(' ')[1] ?? 0),
    headers,
    text: rest,
    json: asJson(rest),
    waitedMs: (answered - sent) * 1_000,
    sentBytes,
    failure: metrics.slice(0, Math.max(last, 0)).trim(),
  }
}

function asJson(text: string): unknown {
  try {
    return JSON.parse(text) as unknown
  } catch {
    return undefined
  }
}
