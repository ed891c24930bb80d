import { openHostRecord } from '../../src/host/identity/host-record.ts'
import { createSnapshot } from '../../src/host/snapshot.ts'
import { openDatabase } from './open-database.ts'
import { clockAt, programs, recordingLog } from '../fixtures/host/edges.ts'
import { layOut } from '../fixtures/host/tree.ts'

/** What a small board answers at `GET /v1/edge-mgmt/edgehosts/current`; always the same. */
export async function hostBody({ isClusterPhase = false } = {}): Promise<string> {
  const { log } = recordingLog()
  const { runner } = programs({ stat: () => `${2 ** 30} 24 15 13\n` })
  const { files, remove } = layOut('single-board')
  const database = openDatabase(':memory:', log)
  const clock = clockAt(Date.UTC(2026, 0, 31, 8))
  const settings = { identitySources: ['product-uuid', 'machine-id'] }
  const snapshot = createSnapshot({
    files,
    runner,
    privileged: runner,
    clock,
    log,
    record: await openHostRecord({ settings, files, database, clock, log }),
    config: { mode: 'airgap' },
    agentVersion: '0.1.0',
    ipv4Addresses: () => new Map([['eth0', [{ ip: '192.0.2.7', subnet: '255.255.255.0' }]]]),
    arch: 'arm64',
  })
  await snapshot.refresh('all')
  database.close()
  remove()
  const body = JSON.parse(snapshot.current()?.body ?? '{}') as { readonly status: object }
  return isClusterPhase
    ? JSON.stringify({ ...body, status: { ...body.status, isClusterPhase } })
    : JSON.stringify(body)
}
