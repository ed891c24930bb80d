import type { Histogram } from '../base/histogram.ts'
import type { FiguresOf } from '../room.ts'
import type { about } from './about.ts'
import type { Standing } from './states.ts'

/** The metrics of the room. @param ends how many steps have ended, by how */
export const clusterFigures = (
  standing: Standing | undefined,
  ends: Readonly<Record<string, number>>,
  durations: Pick<Histogram, 'figures'>,
): FiguresOf<typeof about.families> => ({
  edgehostd_cluster_phase: standing && [{ labels: { phase: standing.phase }, value: 1 }],
  edgehostd_cluster_healthy: standing && Number(standing.health.status === 'Healthy'),
  edgehostd_cluster_steps_total: Object.entries(ends).map(([result, value]) => ({
    labels: { result },
    value,
  })),
  edgehostd_cluster_step_duration_seconds: durations.figures(),
})
