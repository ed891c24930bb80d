import { refusalOf, type Context } from '../../ctl/client.ts'
import { hostPath } from '../../ctl/cluster.ts'
import { readEventStream } from '../../ctl/event-stream.ts'
import { eachLine, moment, oneLine } from '../../ctl/layout.ts'
import { requireFields } from '../../ctl/reply.ts'
import type { LogEntry } from '../schemas.ts'

const path = `${hostPath}/logs`
// The host searches the journal for 10 s.
const timeoutMs = 30_000

type LogsContext = Context<'follow' | 'unit' | 'since' | 'priority' | 'lines'>

/** `edgehostctl logs`. */
export async function showLogs(context: LogsContext): Promise<undefined> {
  const { client, line, output, target } = context
  const { follow, unit, since, priority, lines } = line.options
  const query = new URLSearchParams()
  for (const [name, value] of Object.entries({ unit, since, priority, lines }))
    if (value !== undefined) query.set(name, value)
  const print = (entry: LogEntry) =>
    output.write(Buffer.from(output.format === 'table' ? shown(entry) : `${JSON.stringify(entry)}\n`))
  if (follow !== undefined) {
    query.set('follow', 'true')
    for await (const entry of readEventStream(context, { path: `${path}?${query.toString()}`, read }))
      print(entry)
    return undefined
  }
  const reply = await client.ask({ method: 'GET', path: `${path}?${query.toString()}`, timeoutMs })
  if (reply.status !== 200) throw refusalOf(target, reply)
  for (const each of reply.body.toString().split('\n')) if (each !== '') print(read(JSON.parse(each)))
  const searchedSince = reply.headers['searched-since']
  if (typeof searchedSince === 'string')
    output.note(`Searched back to ${moment(searchedSince)}; name a unit or a shorter time to see more.`)
  return undefined
}

const read = (data: unknown): LogEntry =>
  requireFields<LogEntry>(data, ['time', 'unit', 'priority', 'message'])

/** A message of several lines is indented below its first. */
function shown({ time, unit, priority, message }: LogEntry): string {
  const text = eachLine(message).replaceAll('\n', '\n    ')
  const urgency = ['info', 'debug', 'notice'].includes(priority) ? '' : ` ${oneLine(priority)}:`
  return `${moment(time)} ${oneLine(unit)}:${urgency} ${text}\n`
}
