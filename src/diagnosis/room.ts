// What finds the cause of trouble: files that others put into a folder of this host (`files.ts`), ping and traceroute (`connectivity.ts`), checks of
// connections (`check.ts`), the support archive (`support-archive.ts`), and the logs (`logs.ts`).

import { join } from 'node:path'
import { clusterPaths } from '../cluster/engine/paths.ts'
import type { CommandStreamer } from '../system/runner.ts'
import type { Ground, Room } from '../root/room.ts'
import type { HostWay } from '../outgoing/proxy.ts'
import type { PlatformClientOptions } from '../uplink/client.ts'
import type { Verbs } from '../verbs/call.ts'
import { createCheck } from './check.ts'
import type { DiagnosisSettings } from './config.ts'
import { createConnectivity } from './connectivity.ts'
import { createOfferedFiles } from './files.ts'
import { connectivityRoutes } from './routes-connectivity.ts'
import { archiveRoutes } from './routes-archive.ts'
import { createLogs, type LogsOptions } from './logs.ts'
import { logRoutes } from './routes-logs.ts'
import { fileRoutes } from './routes-files.ts'
import { createSupportArchive } from './support-archive.ts'

interface DiagnosisOptions {
  readonly verbs: Verbs
  readonly streamer: CommandStreamer
  readonly cluster: Pick<LogsOptions, 'hide' | 'clusterSince'>
  readonly hostName: () => string
  /** Proxies and authorities that this host has for all calls. */
  readonly hostWay?: HostWay
  /** How the platform of this host is reached; undefined without one. */
  readonly platformWay: () => Promise<PlatformClientOptions | undefined>
}

/** Diagnosis of this host. */
export function createDiagnosis(
  ground: Ground<{ readonly diagnosis: DiagnosisSettings }>,
  { verbs, hostName, platformWay, hostWay, streamer, cluster }: DiagnosisOptions,
): Room {
  const { runner, clock } = ground
  const settings = ground.config.diagnosis
  const connectivity = createConnectivity({ runner, verbs })
  const check = createCheck({
    connectivity,
    platformWay,
    ...(hostWay ? { hostWay } : {}),
    monotonic: () => clock.monotonic(),
    now: () => clock.now(),
  })
  const logs = createLogs({
    streamer,
    clock,
    hide: cluster.hide,
    clusterSince: cluster.clusterSince,
    steps: join(clusterPaths(ground.stateDirectory).folder, 'steps'),
  })
  const archive = createSupportArchive({ ...ground, verbs, settings: settings.archive, hostName })
  return {
    prepare: archive.prepare,
    jobs: [
      {
        name: 'old support archives',
        schedule: '41 */10 * * * *',
        stuckAfterMs: 300_000,
        run: archive.removeOld,
      },
    ],
    async routes(app) {
      await archiveRoutes(app, { archive })
      await logRoutes(app, { logs, now: () => clock.now() })
      await fileRoutes(app, { files: createOfferedFiles(settings.filesDirectory) })
      await connectivityRoutes(app, { connectivity, check })
    },
  }
}
