import type { PlatformLink } from '../../src/uplink/schemas.ts'

/** What a host answers that does not reach its platform. */
export const platformLink: PlatformLink = {
  ...{ mode: 'connected', registrationStatus: 'registered', isConnected: false },
  ...{ url: 'https://platform.plant.example', proxy: 'http://proxy.plant.example:3128' },
  edgeHostUid: '0198c1f0-6f0e-7c3a-9d52-2f6d7c1b0a44',
  projectUid: '0198c1f0-6f0e-7c3a-9d52-2f6d7c1b0a45',
  since: '2026-01-31T08:00:00.000Z',
  lastContactTimestamp: '2026-01-31T07:59:12.000Z',
  nextAttemptTimestamp: '2026-01-31T08:04:41.000Z',
  cause: {
    kind: 'name',
    message: 'the name platform.plant.example cannot be resolved (ENOTFOUND); check DNS',
  },
  wanted: {
    ...{ number: 4, acceptedNumber: 3, clusterName: 'edge-1' },
    clusterUid: '0198c1f0-6f0e-7c3a-9d52-2f6d7c1b0a46',
    condition: {
      ...{ status: 'Unknown', reason: 'Downloading' },
      message: 'number 4',
    },
    download: { receivedBytes: 104_857_600, totalBytes: 524_288_000 },
  },
  events: { waiting: 3, dropped: 0 },
}
