import type { FastifyReply } from 'fastify'

/**
 * Keeps the connection of a request open while its handler works and no bytes move, for example while an upload is checked: with a listener
 * for 'timeout', Node does not close it.
 */
export const keepOpen = ({ raw }: FastifyReply): void => void raw.on('timeout', () => undefined)
