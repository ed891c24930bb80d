import type { Examined, ExamineOrder } from './protocol.ts'

/**
 * Reads the index and the manifests in the folder of an upload, and writes its record, `record.jsonl`.
 * @throws AppError why the bundle is refused
 */
export async function examine({ upload }: ExamineOrder): Promise<Examined> {
  throw new Error(`${upload}: no bundle is examined yet`)
}
