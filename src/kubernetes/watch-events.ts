import { createGrowingBuffer } from '../base/growing-buffer.ts'
import { KubernetesError, type KubernetesObject } from './client.ts'
import { isRecord, parseExactJson, parseJson } from '../base/json.ts'
import { isObject, withoutManagers } from './json.ts'
import { refusal } from './request.ts'

/** A line of a watch. */
export interface WatchEvent {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK'
  /** Of a bookmark only its resource version means something. */
  readonly object: KubernetesObject
  /** The watch continues from here. */
  readonly resourceVersion: string
}

// etcd takes 1.5 MiB for an object; its JSON is larger where Kubernetes stores it in another form.
const longestLine = 8 * 1024 * 1024
const lineEnd = 0x0a

/**
 * Reads the lines of a watch, those of one piece together.
 * @throws KubernetesError that an event of the type ERROR reports, also of a line that has no end or is not understood
 */
export async function* readWatchEvents(
  chunks: AsyncIterable<unknown>,
  longest = longestLine,
): AsyncGenerator<readonly WatchEvent[]> {
  const rest = createGrowingBuffer(longest)
  const keep = (piece: Buffer) => {
    if (!rest.add(piece))
      throw new KubernetesError(200, 'TooLarge', `a line of a watch has more than ${longest} bytes`)
  }
  for await (const chunk of chunks as AsyncIterable<Buffer>) {
    const events: WatchEvent[] = []
    let from = 0
    for (let end = chunk.indexOf(lineEnd); end >= 0; end = chunk.indexOf(lineEnd, from)) {
      keep(chunk.subarray(from, end))
      from = end + 1
      const line = rest.bytes().toString()
      rest.clear()
      try {
        if (line.trim() !== '') events.push(parseEvent(line))
      } catch (error) {
        if (events.length > 0) yield events
        throw error
      }
    }
    keep(chunk.subarray(from))
    yield events
  }
}

function parseEvent(line: string): WatchEvent {
  const event = parseJson(line, parseExactJson)
  const { type, object } = isRecord(event) ? event : {}
  if (type === 'ERROR') throw refusal(500, object)
  const isKnown = type === 'ADDED' || type === 'MODIFIED' || type === 'DELETED' || type === 'BOOKMARK'
  // A bookmark has no name.
  const named = isRecord(object) && type === 'BOOKMARK' ? withName(object) : object
  const resourceVersion = isObject(named) ? named.metadata.resourceVersion : undefined
  if (!isKnown || !isObject(named) || resourceVersion === undefined)
    throw new KubernetesError(200, 'InvalidReply', 'an event of a watch is not understood')
  return { type, object: withoutManagers(named), resourceVersion }
}

const withName = (object: Readonly<Record<string, unknown>>) => ({
  ...object,
  metadata: { name: '', ...(isRecord(object.metadata) ? object.metadata : {}) },
})
