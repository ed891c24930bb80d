import { Readable } from 'node:stream'
import { describe, expect, it } from 'vitest'
import type { KubernetesError } from '../../../src/kubernetes/client.ts'
import { readWatchEvents, type WatchEvent } from '../../../src/kubernetes/watch.ts'

// Recorded: kube-apiserver 1.34.4, GET /api/v1/namespaces/default/configmaps?watch=1&allowWatchBookmarks=true&labelSelector=a%3Db
const recorded = [
  '{"type":"ADDED","object":{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"x","namespace":"default","uid":"6e86969f-254f-4997-941e-4a55d1e1e707","resourceVersion":"226","creationTimestamp":"2026-11-23T11:03:05Z","labels":{"a":"b"},"managedFields":[{"manager":"edgehostd","operation":"Apply","apiVersion":"v1","time":"2026-11-23T11:03:05Z","fieldsType":"FieldsV1","fieldsV1":{"f:data":{"f:k":{}},"f:metadata":{"f:labels":{"f:a":{}}}}}]},"data":{"k":"€"}}}',
  '{"type":"MODIFIED","object":{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"x","namespace":"default","uid":"6e86969f-254f-4997-941e-4a55d1e1e707","resourceVersion":"227","creationTimestamp":"2026-11-23T11:03:05Z","labels":{"a":"b"},"managedFields":[{"manager":"edgehostd","operation":"Apply","apiVersion":"v1","time":"2026-11-23T11:03:05Z","fieldsType":"FieldsV1","fieldsV1":{"f:data":{"f:k":{}},"f:metadata":{"f:labels":{"f:a":{}}}}}]},"data":{"k":"w"}}}',
  '{"type":"DELETED","object":{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"x","namespace":"default","uid":"6e86969f-254f-4997-941e-4a55d1e1e707","resourceVersion":"228","creationTimestamp":"2026-11-23T11:03:05Z","labels":{"a":"b"},"managedFields":[{"manager":"edgehostd","operation":"Apply","apiVersion":"v1","time":"2026-11-23T11:03:05Z","fieldsType":"FieldsV1","fieldsV1":{"f:data":{"f:k":{}},"f:metadata":{"f:labels":{"f:a":{}}}}}]},"data":{"k":"w"}}}',
  '{"type":"BOOKMARK","object":{"kind":"ConfigMap","apiVersion":"v1","metadata":{"resourceVersion":"228"}}}',
]
const expired =
  '{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"too old resource version: 1 (208)","reason":"Expired","code":410}}'

async function read(text: string, pieceBytes = 1_000_000, longest = 10_000) {
  const bytes = Buffer.from(text)
  const pieces: Buffer[] = []
  for (let at = 0; at < bytes.length; at += pieceBytes) pieces.push(bytes.subarray(at, at + pieceBytes))
  const batches: (readonly WatchEvent[])[] = []
  let error: KubernetesError | undefined
  try {
    for await (const batch of readWatchEvents(Readable.from(pieces), longest)) batches.push(batch)
  } catch (thrown) {
    error = thrown as KubernetesError
  }
  return { batches, events: batches.flat(), error }
}

describe('a watch', () => {
  it('is read line by line, wherever the pieces end', async () => {
    for (let bytes = 1; bytes <= 200; bytes += 1) {
      const { events, error } = await read(`${recorded.join('\n')}\n`, bytes)
      expect(error).toBeUndefined()
      expect(events.map(({ type, resourceVersion }) => [type, resourceVersion])).toEqual([
        ['ADDED', '226'],
        ['MODIFIED', '227'],
        ['DELETED', '228'],
        ['BOOKMARK', '228'],
      ])
      expect(events[0]!.object.data).toEqual({ k: '€' })
    }
  })

  it('gives the events of one piece together, without who manages their fields', async () => {
    const { batches } = await read(`${recorded.join('\n')}\n`)
    expect(batches.map((batch) => batch.length)).toEqual([4])
    expect(batches[0]![0]!.object.metadata).not.toHaveProperty('managedFields')
  })

  it('passes on an error of the API server, after the events before it', async () => {
    const { events, error } = await read(`${recorded[0]}\n${expired}\n${recorded[1]}\n`)
    expect(events).toHaveLength(1)
    expect(error).toMatchObject({
      status: 410,
      reason: 'Expired',
      message: 'too old resource version: 1 (208)',
    })
  })

  it('ends at a line without an end, before it fills the memory', async () => {
    const { events, error } = await read(`${recorded[0]}\n${'x'.repeat(20_000)}`, 1_000)
    expect(events).toHaveLength(1)
    expect(error).toMatchObject({ reason: 'TooLarge' })
  })

  it.each([
    ['no JSON', 'hello'],
    ['no object', 'null'],
    ['a type that is not known', recorded[0]!.replace('ADDED', 'MOVED')],
    ['no resource version', recorded[0]!.replace('resourceVersion', 'version')],
    ['no name', recorded[0]!.replace('"name":"x",', '')],
  ])('ends at a line with %s', async (_, line) => {
    const { events, error } = await read(`${recorded[1]}\n${line}\n`)
    expect(events).toHaveLength(1)
    expect(error).toMatchObject({ reason: 'InvalidReply' })
  })

  it('that is cut off in a line gives the lines before it', async () => {
    const { events, error } = await read(`${recorded[0]}\n${recorded[1]!.slice(0, 80)}`)
    expect([events.length, error]).toEqual([1, undefined])
  })
})
