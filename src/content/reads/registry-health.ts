import { addressWithPort } from '../../base/address.ts'
import { AppError } from '../../errors/app-error.ts'
import type { RegistryState } from '../registry/registry.ts'
import type { RegistryHealthDetails } from '../schemas.ts'
import type { OpenStore } from '../store/open-store.ts'
import type { FileSystemRoom } from '../store/space.ts'
import { binaryAmount } from './registry-content.ts'

/** Whether images can be pulled from this host, and the disk that they are on. */
export async function readRegistryHealth(
  store: OpenStore,
  state: RegistryState,
): Promise<RegistryHealthDetails> {
  const found = await readStore(store)
  const disk = found.room ? describeDisk(found.room) : {}
  if (!state.isEnabled)
    return {
      State: 'NotInstalled',
      Message: 'the registry is switched off; set content.registry.enabled: true and restart edgehostd',
      ...disk,
    }
  const problems = [...problemsOf(state), ...found.problems]
  return {
    State: problems.length > 0 ? 'Unhealthy' : 'Healthy',
    Message: problems.length > 0 ? problems.join('; ') : `the registry listens on ${urlOf(state)}`,
    ...disk,
  }
}

interface StoreHealth {
  readonly problems: readonly string[]
  /** Absent if the content cannot be read. */
  readonly room?: FileSystemRoom
}

async function readStore(store: OpenStore): Promise<StoreHealth> {
  try {
    await store.open()
    return { room: await store.space.read(), problems: damageOf(store) }
  } catch (error) {
    if (!(error instanceof AppError)) throw error
    return { problems: [error.message] }
  }
}

function damageOf(store: OpenStore): string[] {
  const damagedBlobs = store.totals()?.damagedBlobs ?? 0
  return [
    ...(store.isUsable()
      ? []
      : ['the content of this host could not be read or written; the journal of the host says why']),
    ...(store.isComplete()
      ? []
      : [
          'the record of a bundle is damaged, so what it has cannot be pulled; the journal of the host says which, upload that bundle again',
        ]),
    ...(damagedBlobs > 0
      ? [
          `blobs are damaged and not served (${damagedBlobs}); upload again the bundles that edgehostctl content list shows as damaged`,
        ]
      : []),
  ]
}

function problemsOf(state: RegistryState): string[] {
  if (state.problem !== undefined) return [state.problem]
  return state.isListening
    ? []
    : [`the registry does not listen on ${urlOf(state)} yet: edgehostd is starting`]
}

const urlOf = ({ address, port, isTls }: RegistryState): string =>
  `${isTls ? 'https' : 'http'}://${addressWithPort(address, port)}`

function describeDisk({ totalBytes, freeBytes }: FileSystemRoom) {
  const usedBytes = totalBytes - freeBytes
  return {
    DiskCapacity: binaryAmount(totalBytes),
    DiskUsed: binaryAmount(usedBytes),
    DiskAvailable: binaryAmount(freeBytes),
    UsagePercentage: `${Math.round((usedBytes / totalBytes) * 100)}%`,
  }
}
