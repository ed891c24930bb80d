/** The edge for those who read what its routes declare: it knows nobody, writes no log and can answer nothing. */
import { pino } from 'pino'
import { createServer } from '../src/api/server.ts'
import { registerRooms } from '../src/rooms.ts'

export type DeclaringServer = ReturnType<typeof createDeclaringServer>

/** Without routes; whatever collects them comes before. */
export const createDeclaringServer = () =>
  createServer({
    log: pino({ level: 'silent' }),
    bodyLimitBytes: 1,
    mode: 'airgap',
    authenticate: () => undefined,
    onAuthenticated: () => undefined,
  }).app

/** Every route of the daemon. None of them is called, so nothing stands behind them. */
export async function declareRooms(app: DeclaringServer): Promise<void> {
  await registerRooms(app, {
    api: {} as never,
    audit: {} as never,
    auth: {} as never,
    cluster: {} as never,
    content: {} as never,
    host: {} as never,
    metrics: {} as never,
  })
  await app.ready()
}
