import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { openLinkStore } from '../../../src/uplink/link-store.ts'
import { captureLog } from '../../support/https-server.ts'

it('keeps the key of the pinned certificate with the registration, for its fingerprint alone', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'link-store-'))
  try {
    const open = () => openLinkStore(folder, captureLog().log)
    const store = await open()
    store.learnKey({ fingerprint: 'AA:BB', key: 'k1' })
    // Nothing is written before there is a registration.
    expect([(await open()).current(), store.pinnedKey('AA:BB')]).toEqual([undefined, 'k1'])
    await store.putRegistration({ edgeHostUid: 'u1', projectUid: '', hostId: 'h1' })
    await store.putGeneration(7)
    const again = await open()
    expect(again.current()).toMatchObject({ edgeHostUid: 'u1', generation: 7 })
    expect([again.pinnedKey('AA:BB'), again.pinnedKey('CC:DD')]).toEqual(['k1', undefined])
    again.learnKey({ fingerprint: 'CC:DD', key: 'k2' })
    await again.putGeneration(8)
    expect([(await open()).pinnedKey('AA:BB'), (await open()).pinnedKey('CC:DD')]).toEqual([undefined, 'k2'])
  } finally {
    await rm(folder, { recursive: true })
  }
})

it('a login after a removal says that the platform has this host again', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'link-store-'))
  try {
    const store = await openLinkStore(folder, captureLog().log)
    await store.putRegistration({ edgeHostUid: 'u1', projectUid: '', hostId: 'h1' })
    await store.markRemoved()
    expect(store.current()?.isRemoved).toBe(true)
    await store.putGeneration(1)
    expect(store.current()?.isRemoved).toBe(false)
  } finally {
    await rm(folder, { recursive: true })
  }
})
