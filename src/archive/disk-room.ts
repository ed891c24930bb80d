/** Free space on a disk that is used up step by step. */
export interface DiskRoom {
  /**
   * Call this before that many bytes are written.
   * @throws AppError StorageFull when they would use the reserve
   */
  take(bytes: number): Promise<void>
  /** Call this before a file or a folder is created. */
  takeFile(): Promise<void>
}
