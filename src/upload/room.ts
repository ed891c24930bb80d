import type { Ground, Room } from '../room.ts'
import type { ContentSettings } from './config.ts'
import { contentRoutes } from './routes.ts'
import { noteSigningKey } from './signing-key-store.ts'
import { parseSigningKey } from './signing.ts'

/**
 * Creates the room with the rules for all uploads to this host.
 * @throws SigningKeyUnusable
 */
export function createUploadRoom(ground: Ground<{ readonly content: ContentSettings }>): Room {
  const key = parseSigningKey(ground.config.content.signing.publicKey)
  const since = noteSigningKey(key, ground)
  return {
    async routes(app) {
      await app.register(contentRoutes, { signing: key && { key, since: since ?? ground.clock.now() } })
    },
  }
}
